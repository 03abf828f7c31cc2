"""Stage: the model that training starts from, pretrained here unless the study names one."""

from functools import partial
from pathlib import Path

import torch

from exgrpo.policy import fingerprint, load_policy
from exgrpo.pretraining import pretrain
from exgrpo.studies import Study
from pipeline.files import base_path, begin, mark_done, section_hash, study_folder


def make_base_model(study: Study, results: Path, threads: int) -> None:
    """Pretrain into `base/`, or check that the model that the study names can be loaded."""
    torch.set_num_threads(threads)
    folder = study_folder(study, results) / "base"
    source = study.any_run.base
    begin(folder)
    if source.path is None:
        pretrain(source.pretraining, folder, partial(print, flush=True))
    path = base_path(study, results)
    model, _ = load_policy(path)
    mark_done(
        folder,
        settings=section_hash(source),
        path=path,
        fingerprint=fingerprint(model),
        parameters=sum(weight.numel() for weight in model.parameters()),
    )
