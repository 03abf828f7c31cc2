"""What every group of settings is: typed, closed, unchanged after loading."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A group of settings. Unknown keys are errors; values are not changed after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
