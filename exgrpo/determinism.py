"""`training.deterministic`: what torch offers, or an error that says what stands in the way."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from exgrpo.errors import UserError

WORKSPACES = (":4096:8", ":16:8")  # [cuBLAS] the two that give the same bits every time


@contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Inside, an operation gives the same bits every time or is a UserError; not wanted: nothing.

    UserError at once on a GPU without the environment variable that cuBLAS reads when it starts.
    """
    if not wanted:
        yield
        return
    found = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    if torch.cuda.is_available() and found not in WORKSPACES:
        raise UserError(
            f"settings.training.deterministic: on a GPU this needs the environment variable "
            f"CUBLAS_WORKSPACE_CONFIG, found {found!r}. Set it to {WORKSPACES[0]} before the "
            f"start, or set deterministic to false."
        )
    cudnn = torch.backends.cudnn
    before = torch.are_deterministic_algorithms_enabled(), cudnn.deterministic, cudnn.benchmark
    _set(True, True, False)
    try:
        yield
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        raise UserError(
            f"settings.training.deterministic: {error}. Set it to false to train all the same."
        ) from error
    finally:
        _set(*before)


def _set(algorithms: bool, cudnn: bool, benchmark: bool) -> None:
    torch.use_deterministic_algorithms(algorithms)
    torch.backends.cudnn.deterministic = cudnn
    torch.backends.cudnn.benchmark = benchmark
