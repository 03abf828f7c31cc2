"""The id of an evaluation sample: `run:step:benchmark:question:sample`, its texts URL-encoded.

The log gives samples a key of five columns and no id. Encoded, no text holds a colon, so that an
id is read in one way only, whatever runs and benchmarks are called.
"""

from typing import NamedTuple
from urllib.parse import quote, unquote

SAMPLE_ID = (
    "concat_ws(':', url_encode(run), step, url_encode(benchmark), url_encode(question), sample)"
)


class SampleKey(NamedTuple):
    """The key of a row of `evaluations`."""

    run: str
    step: int
    benchmark: str
    question: str
    sample: int

    @property
    def id(self) -> str:
        """What `SAMPLE_ID` gives for the row."""
        return ":".join(
            quote(part, safe="") if isinstance(part, str) else str(part) for part in self
        )


def sample_key(id: str) -> SampleKey | None:
    """The key that an id names; None for a text that is no such id."""
    try:
        run, step, benchmark, question, sample = id.split(":")
        key = SampleKey(unquote(run), int(step), unquote(benchmark), unquote(question), int(sample))
    except ValueError:
        return None
    return key if key.id == id and max(key.step, key.sample) < 2**63 else None
