"""The base model that vLLM can run without a GPU: its attention there needs heads of 32 or more."""

from pathlib import Path

import pytest

from exgrpo.pretraining import pretrain
from exgrpo.settings import Pretraining

WIDE = Pretraining(steps=150, batch=32, width=64, layers=2, heads=2, max_level=2)


@pytest.fixture(scope="session")
def wide_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`base_folder` of twice the width: two heads of 32."""
    folder = tmp_path_factory.mktemp("model") / "wide"
    pretrain(WIDE, folder, lambda line: None)
    return folder
