"""Every observation, in the order of the report."""

from analysis.observations.bucket_dynamics import BUCKET_DYNAMICS
from analysis.observations.data_efficiency import DATA_EFFICIENCY
from analysis.observations.forgetting import FORGETTING
from analysis.observations.gain_by_bucket import GAIN_BY_BUCKET
from analysis.observations.masked_grpo import MASKED_GRPO
from analysis.observations.observation import Observation

OBSERVATIONS: tuple[Observation, ...] = (
    MASKED_GRPO,
    GAIN_BY_BUCKET,
    BUCKET_DYNAMICS,
    FORGETTING,
    DATA_EFFICIENCY,
)
