"""Stage: the model that training starts from: named, out of a package, or pretrained here."""

from functools import partial
from pathlib import Path

import torch

from exgrpo.policy import fingerprint, load_policy
from exgrpo.pretraining import pretrain
from exgrpo.studies import Study
from pipeline.files import base_path, begin, mark_done, section_hash, study_folder
from pipeline.model_package import make_packaged_model


def make_base_model(study: Study, results: Path, threads: int) -> None:
    """Pretrain into `base/` or convert a package, and check that the model can be loaded."""
    torch.set_num_threads(threads)
    folder = study_folder(study, results) / "base"
    source = study.any_run.base
    begin(folder)
    say = partial(print, flush=True)
    if source.package is not None:
        make_packaged_model(source.package, results, say)
    elif source.path is None:
        pretrain(source.pretraining, folder, say)
    path = base_path(study, results)
    model, _ = load_policy(path)
    mark_done(
        folder,
        settings=section_hash(source),
        path=path,
        fingerprint=fingerprint(model),
        parameters=sum(weight.numel() for weight in model.parameters()),
    )
