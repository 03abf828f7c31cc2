"""Stage: the model that training starts from, pretrained here unless the study names one."""

import shutil
from functools import partial
from pathlib import Path

import torch

from exgrpo.policy import fingerprint, load_policy
from exgrpo.pretraining import pretrain
from exgrpo.settings import Study
from pipeline.files import mark_done, study_folder


def make_base_model(study: Study, results: Path, threads: int) -> None:
    """Pretrain into `base/`, or check that the model that the study names can be loaded."""
    torch.set_num_threads(threads)
    folder = study_folder(study, results) / "base"
    source = study.any_run.base
    if source.path is None:
        aside = folder.with_name("base.unfinished")
        shutil.rmtree(aside, ignore_errors=True)
        pretrain(source.pretraining, aside, partial(print, flush=True))
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
    model, _ = load_policy(source.path or str(folder))
    mark_done(
        folder,
        path=source.path or str(folder),
        fingerprint=fingerprint(model),
        parameters=sum(weight.numel() for weight in model.parameters()),
    )
