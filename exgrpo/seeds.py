"""Random generators derived from (seed, purpose, step): a resume needs no generator state."""

import hashlib

import numpy as np


def derived_seed(seed: int, purpose: str, number: int) -> int:
    """A seed for one purpose at one step, or for one question and slot."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def numpy_generator(seed: int, purpose: str, step: int) -> np.random.Generator:
    return np.random.default_rng(derived_seed(seed, purpose, step))
