"""Shared by all tests: a small base model, made once a session."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from pathlib import Path

import pytest
import torch

from exgrpo.pretraining import pretrain
from exgrpo.settings import Pretraining

torch.set_num_threads(1)

SMALL = Pretraining(steps=150, batch=32, width=32, layers=2, heads=2, max_level=2)


@pytest.fixture(scope="session")
def base_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Llama of about 30 000 parameters that has seen short chains."""
    folder = tmp_path_factory.mktemp("model") / "base"
    pretrain(SMALL, folder, lambda line: None)
    return str(folder)


@pytest.fixture
def shared() -> Path:
    """The folder of real data beside the checkout; tests that need it skip without it."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("needs the folder ../shared with real data, which is not part of the repo")
    return folder
