# The study, and the few functions that rules need.

import re
from pathlib import Path

from exgrpo.data_set_file import descriptions
from exgrpo.hardware import CPU, load_hardware
from exgrpo.settings import content_hash
from exgrpo.studies import load_study
from pipeline.files import questions_hash
from pipeline.scheduler import requested
from pipeline.study import finished_runs, write_study

config.setdefault("study", "tiny")
config.setdefault("hardware", None)  # what a training or an evaluation is given; None: processors
config.setdefault("threads", 1)  # of each of its processes, where the hardware does not say
config.setdefault("finished", False)  # train nothing: report on the runs that are trained already

STUDY = load_study(config["study"])
SHARED = STUDY.any_run
DATA_SETS = {
    name: content_hash(described.model_dump(mode="json"))
    for name, described in descriptions(SHARED.questions, Path("config")).items()
}
HARDWARE = load_hardware(config["hardware"]) if config["hardware"] else CPU
THREADS = HARDWARE.threads or config["threads"]
# Joined to the commands: as params it would train again what was trained elsewhere.
WHERE = f" --threads {THREADS}" + (f" --hardware {config['hardware']}" if config["hardware"] else "")
# No params of a rule: a run that was trained elsewhere is trained.
RESOURCES = requested(HARDWARE)
RUNS = finished_runs(STUDY, Path("results")) if config["finished"] else list(STUDY.runs)

# Written here, not by a rule, so that it is right even where Snakemake's own records are lost.
write_study(STUDY, Path("results"))


# Of the checkout, wherever the results are. A change of these makes the analysis or the report
# anew; no run depends on them.
ANALYSIS = Path(workflow.basedir).parent / "analysis"
QUERIES = sorted(map(str, ANALYSIS.glob("sql/*.sql")))
LEDGER = sorted(map(str, [*ANALYSIS.glob("*.yaml"), *ANALYSIS.glob("paper/*.[cs]*")]))
TEMPLATES = sorted(map(str, ANALYSIS.glob("templates/*")))


# Where jobs go to a cluster, these stay: they are light and would only queue. So do questions and
# base_model, which fetch what a node without a network could not.
localrules:
    all,
    lake,
    catalog,
    analyse,
    figures,
    report,
    summary,


wildcard_constraints:
    study=re.escape(STUDY.name),
    run="|".join(map(re.escape, [*STUDY.runs, STUDY.base_run])),


def entries():
    """Everything of this study that the lake is to hold."""
    return [f"questions-{STUDY.name}", STUDY.base_run, *RUNS]


def model_of(run):
    """The file that says that the model of a run is there; the base model's for the base run."""
    folder = "base" if run == STUDY.base_run else f"runs/{run}"
    return f"results/{STUDY.name}/{folder}/done.json"


def models_needed(wildcards):
    """The runs from which this one takes its first model or a pool of answers."""
    return [model_of(run) for run in STUDY.needs(wildcards.run)]


def evaluated_model(wildcards):
    """What must be there before a run can be evaluated."""
    return model_of(wildcards.run)


def logs_of_entry(wildcards):
    """What must be done before an entry of the lake can be made."""
    entry, folder = wildcards.entry, f"results/{STUDY.name}"
    if entry == f"questions-{STUDY.name}":
        return [f"{folder}/questions/done.json"]
    return [model_of(entry), f"{folder}/evaluations/{entry}/done.json"]


def training_priority(wildcards):
    """The first seed of every arm comes first: a whole comparison is there as early as can be.

    Never below 1: Snakemake's solver lets a core idle rather than start a job of less than 0.
    """
    run, arms = STUDY.runs[wildcards.run], list(STUDY.arms)
    return len(STUDY.runs) - STUDY.seeds.index(run.seed) * len(arms) - arms.index(run.arm)


AFTER_TRAINING = len(STUDY.runs) + 1  # what a finished run waits for comes before any training
