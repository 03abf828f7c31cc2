"""The golden lake: `make golden` trains the micro study `golden` and puts its lake in `lake/`.

The rows come from the real stages: questions, base model, training, evaluation, lake, import. On
the same machine with the same libraries the same rows come again, except for wall times, dates,
the commit and the version numbers. Runs that are trained are kept under `build/golden`; `make
clean` forgets them.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported

import shutil
from pathlib import Path

from exgrpo.studies import load_study
from exgrpo.tables import TABLES
from pipeline.base_model import make_base_model
from pipeline.evaluate import evaluate_run
from pipeline.imports.command import import_file
from pipeline.lake import add_study_entry
from pipeline.questions import make_questions
from pipeline.study import write_study
from pipeline.train import train_run

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STUDY, IMPORT = "golden", "riddles"
RESULTS = Path("results")  # relative to the work folder: the rows then name no path of this machine


def main() -> None:
    """Train what is not trained, make every entry of the lake anew, and copy the lake here."""
    work = ROOT / "build" / STUDY
    shutil.copytree(ROOT / "config" / "arms", work / "config" / "arms", dirs_exist_ok=True)
    shutil.copytree(HERE / "config", work / "config", dirs_exist_ok=True)
    os.chdir(work)
    shutil.rmtree(RESULTS / "lake", ignore_errors=True)
    run_stages()
    shutil.rmtree(HERE / "lake", ignore_errors=True)
    for folder in ("entries", *TABLES):
        if (RESULTS / "lake" / folder).is_dir():
            shutil.copytree(RESULTS / "lake" / folder, HERE / "lake" / folder)


def run_stages() -> None:
    """All stages of the study, one after the other, then the import."""
    study = load_study(STUDY)
    write_study(study, RESULTS)
    make_base_model(study, RESULTS, threads=1)
    make_questions(study, RESULTS)
    for run in study.runs:
        train_run(study, run, RESULTS, threads=1)
    for run in (study.base_run, *study.runs):
        evaluate_run(study, run, RESULTS, threads=1)
    for entry in (f"questions-{STUDY}", study.base_run, *study.runs):
        add_study_entry(study, entry, RESULTS)
    import_file(HERE / f"{IMPORT}.jsonl", IMPORT, RESULTS)


if __name__ == "__main__":
    main()
