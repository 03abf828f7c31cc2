"""Every observation, in the order of the report."""

from analysis.observations.bucket_dynamics import BUCKET_DYNAMICS
from analysis.observations.data_efficiency import DATA_EFFICIENCY
from analysis.observations.entropy_by_difficulty import ENTROPY_BY_DIFFICULTY
from analysis.observations.entropy_validity import ENTROPY_VALIDITY
from analysis.observations.forgetting import FORGETTING
from analysis.observations.gain_by_bucket import GAIN_BY_BUCKET
from analysis.observations.markers import MARKERS
from analysis.observations.masked_grpo import MASKED_GRPO
from analysis.observations.observation import Observation
from analysis.observations.selection_audit import SELECTION_AUDIT
from analysis.observations.snowball import SNOWBALL
from analysis.observations.staleness import STALENESS

OBSERVATIONS: tuple[Observation, ...] = (
    MASKED_GRPO,
    GAIN_BY_BUCKET,
    ENTROPY_VALIDITY,
    ENTROPY_BY_DIFFICULTY,
    MARKERS,
    SNOWBALL,
    SELECTION_AUDIT,
    STALENESS,
    BUCKET_DYNAMICS,
    FORGETTING,
    DATA_EFFICIENCY,
)
