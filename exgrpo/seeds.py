"""Random generators derived from (seed, purpose, step): a resume needs no generator state."""

import hashlib

import numpy as np
import torch


def derived_seed(seed: int, purpose: str, step: int) -> int:
    """A seed for one purpose at one step."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{step}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def numpy_generator(seed: int, purpose: str, step: int) -> np.random.Generator:
    return np.random.default_rng(derived_seed(seed, purpose, step))


def torch_generator(seed: int, purpose: str, step: int) -> torch.Generator:
    return torch.Generator().manual_seed(derived_seed(seed, purpose, step))
