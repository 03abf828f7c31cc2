"""Print what a study will need: memory, tokens, disk and time; refuse what cannot fit."""

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from exgrpo import questions
from exgrpo.data_set_file import descriptions
from exgrpo.errors import UserError
from exgrpo.hardware import CPU, Hardware, load_hardware
from exgrpo.plan.fit import problem, remedies
from exgrpo.plan.host import host_memory
from exgrpo.plan.memory import GB, Case, Lengths, Memory, Phase, engine_memory, training_memory
from exgrpo.plan.shape import ModelShape, config_file, shape_of
from exgrpo.plan.volume import (
    Rates,
    Volume,
    hours,
    log_bytes_a_token,
    questions_in,
    test_length,
    test_samples,
    volume_of,
)
from exgrpo.pretraining import POSITIONS
from exgrpo.room import longest_prompts, positions_of, require_room
from exgrpo.settings import RunSettings
from exgrpo.studies import Study
from pipeline.files import base_path, question_file


@dataclass(frozen=True)
class Options:
    """What the command was told; None: not told."""

    hardware: str | None = None
    gpus: int | None = None
    gpu_memory: float | None = None
    mean_response: float | None = None
    mean_prompt: float | None = None
    success: float = 0.5
    rollout_rate: float | None = None
    update_rate: float | None = None
    measured: Path | None = None


@dataclass(frozen=True)
class Plan:
    """Of one run; runs of equal plans are told together."""

    case: Case
    memory: Memory
    engine: Memory | None
    volume: Volume
    host: Phase


def show_plan(study: Study, config: Path, results: Path, options: Options) -> None:
    """Print the plan of a study. UserError where a run does not fit."""
    hardware = hardware_of(options, config)
    shape, known_from = shape_of(study.any_run.base, base_path(study, results), config)
    rows = {name: each.rows for name, each in descriptions(study.any_run.questions, config).items()}
    kinds: dict[tuple[object, ...], list[tuple[str, Plan]]] = defaultdict(list)
    for run, settings in study.runs.items():
        case = Case(shape, settings, hardware, lengths_of(settings, study, results, options))
        validation = questions_in(settings.questions.validation, rows) or 0
        volume = volume_of(case, options.success, validation)
        plan = Plan(
            case, training_memory(case), engine_memory(case), volume,
            host_memory(case, volume.buffer_bytes),
        )  # fmt: skip
        kinds[plan.memory, plan.engine, volume].append((run, plan))
    _print_head(study, shape, known_from, hardware, options, next(iter(kinds.values()))[0][1].case)
    rates = rates_of(options, shape, study.any_run)
    for members in kinds.values():
        _print_kind([run for run, _ in members], members[0][1], study, options, rates)
    _print_sum([(len(members), members[0][1]) for members in kinds.values()], study, rates, rows)
    run, worst = max((members[0] for members in kinds.values()), key=lambda one: one[1].memory.peak)
    require_fit(run, worst)
    _require_room(study, results)


def hardware_of(options: Options, config: Path) -> Hardware:
    """The hardware file, changed by --gpus and --gpu-memory; without a file what they say."""
    base = load_hardware(options.hardware, config) if options.hardware else CPU
    if options.gpus is None and options.gpu_memory is None:
        return base
    gpus = base.gpus if options.gpus is None else options.gpus
    if options.gpu_memory is not None and not gpus:
        raise UserError("--gpu-memory is of GPUs, and there are none: give --gpus or --hardware.")
    each = 2 if base.engine == "own" else 1
    if gpus % each:
        raise UserError(
            f"--gpus {gpus}: engine `own` takes two GPUs a process. Give an even number."
        )
    changed: dict[str, object] = {
        "gpus": gpus,
        "gpu_memory": options.gpu_memory or base.gpu_memory,
        "processes": max(1, gpus // each),
    }
    if not options.hardware:
        changed |= {
            "title": "no hardware file, so as --gpus says",
            "weights": "sharded" if gpus > 1 else "replicated",
            "activation_checkpointing": True,
        }
    if gpus and changed["gpu_memory"] is None:
        raise UserError("The memory of the GPUs is not known: give --gpu-memory, in GB of each.")
    return Hardware.model_validate({**base.model_dump(), **changed})


def lengths_of(settings: RunSettings, study: Study, results: Path, options: Options) -> Lengths:
    """Tokens: of prompts as the questions have them where these are made; else the limits."""
    prompt, response = settings.questions.max_prompt_tokens, settings.rollout.max_new_tokens
    mean: float = prompt
    file = question_file(study, "train", results)
    if file.is_file():
        counts = [len(each.prompt_ids) for each in questions.load(file)]
        prompt, mean = max(counts), sum(counts) / len(counts)
    told = options.mean_response or response
    for option, value, most in (
        ("--mean-response", told, response),
        ("--mean-prompt", options.mean_prompt or mean, prompt),
    ):
        if value > most:
            raise UserError(f"{option} {value:g}: longer than the longest, {most} tokens.")
    return Lengths(prompt, response, options.mean_prompt or mean, told)


def rates_of(options: Options, shape: ModelShape, settings: RunSettings) -> Rates | None:
    """Tokens a second on a GPU: as given, or as measured on the model nearest in size.

    Of the study's engine and dtype where these were measured. A measured rate is scaled by the
    number of parameters, which is rough.
    """
    given = (options.rollout_rate, options.update_rate)
    if options.measured is None:
        if (given[0] is None) != (given[1] is None):
            raise UserError("Give both --rollout-tokens-per-second and --update-tokens-per-second.")
        return None if given[0] is None or given[1] is None else Rates(given[0], given[1])
    try:
        models = json.loads(options.measured.read_text())["models"]
        like = {"engine": settings.rollout.engine, "dtype": settings.training.dtype}
        same = [each for each in models if like.items() <= each.items()]
        nearest = min(same or models, key=lambda each: abs(each["parameters"] - shape.parameters))
        scale = nearest["parameters"] / shape.parameters
        names = ("rollout_tokens_per_second", "update_tokens_per_second")
        return Rates(*(scale * float(nearest[name]) for name in names))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{options.measured}: no measurement of benchmarks/gpu_check.py: {error!r}. Give the "
            f"file that its --output named."
        ) from error


def require_fit(run: str, plan: Plan) -> None:
    """UserError where a run does not fit, with what is too big and what to change."""
    if found := problem(plan.case):
        change = remedies(plan.case)
        fits = "Any one of these makes it fit" if len(change) > 1 else "This makes it fit"
        advice = (
            f"{fits}: {'; '.join(change)}. Where nothing else is said these are keys of the "
            f"hardware file; config/hardware has examples."
            if change
            else "No key of the hardware file makes it fit: lower rollout.max_new_tokens of the "
            "study, or choose a smaller model or larger GPUs."
        )
        raise UserError(f"{run}: cannot fit: {found}. {advice}")
    limit = plan.case.hardware.memory
    if limit is not None and plan.host.bytes > limit * GB:
        raise UserError(
            f"{run}: cannot fit: a node needs {plan.host.bytes / GB:,.0f} GB of memory"
            f"{' beside its GPUs' if plan.case.on_gpu else ''}, the hardware file asks for "
            f"{limit:g}. Set its key memory: {-(-plan.host.bytes // (10 * GB)) * 10:.0f}, or give "
            f"a node fewer processes."
        )


def _require_room(study: Study, results: Path) -> None:
    """UserError where prompt and response are longer than the model takes, as far as is known.

    Questions that are not made yet stand for responses alone: their prompts are no one's guess.
    """
    base, config = study.any_run.base, config_file(base_path(study, results))
    made_here = base.path is None and base.package is None
    positions = POSITIONS if made_here else None
    if config is not None:
        positions = positions_of(json.loads(config.read_text()))
    splits = {}
    for split in ("train", "validation", *study.any_run.questions.tests):
        file = question_file(study, split, results)
        splits[split] = questions.load(file) if file.is_file() else []
    longest = longest_prompts(splits)
    for settings in study.runs.values():
        require_room(longest, settings, positions)


def _print_head(
    study: Study,
    shape: ModelShape,
    known_from: str,
    hardware: Hardware,
    options: Options,
    case: Case,
) -> None:
    print(f"Study {study.name}: {study.title}")
    tied = "tied to the head" if shape.tie_word_embeddings else "apart from the head"
    print(
        f"Model: {shape.parameters:,} parameters: {shape.num_hidden_layers} layers, width "
        f"{shape.hidden_size:,}, vocabulary {shape.vocab_size:,}, embedding {tied}.\n"
        f"  Known from {known_from}."
    )
    print(f"Hardware: {_hardware(hardware, case)}.")
    if not options.hardware:
        print("  No --hardware given; `config/hardware/` has files for common machines.")
    lengths = case.lengths
    print(
        f"Lengths: prompts of at most {lengths.prompt:,} tokens, mean {lengths.mean_prompt:,.0f}; "
        f"responses of at most {lengths.response:,}, mean {lengths.mean_response:,.0f}"
        f"{'' if options.mean_response else ' (the limit: say --mean-response)'}.\n"
        f"Assumed: {options.success:.0%} of the rollouts are right and stored (--success). GB is "
        f"10^9 bytes. Not run on a GPU: what is measured, and what is not counted, is in "
        f"docs/plan.md."
    )


def _hardware(hardware: Hardware, case: Case) -> str:
    words = [hardware.title]
    if hardware.gpus:
        words.append(f"{hardware.nodes} x {hardware.gpus} GPUs of {hardware.gpu_memory or 0:g} GB")
    words.append(f"{hardware.all_processes} training process(es), weights {hardware.weights}")
    if case.vllm:
        where = "on the training GPUs" if hardware.engine == "colocated" else "on GPUs of its own"
        words.append(f"vLLM {where}, {hardware.engine_memory:.0%} of a GPU")
    else:
        words.append("the torch engine samples")
    on = "with" if hardware.activation_checkpointing else "without"
    words.append(f"{on} activation checkpointing")
    return ", ".join(words)


def _print_kind(
    runs: list[str], plan: Plan, study: Study, options: Options, rates: Rates | None
) -> None:
    arms = list(dict.fromkeys(study.runs[run].arm for run in runs))
    print(f"\n== {', '.join(arms)}: {len(runs)} run(s) of like cost ==")
    device = "GPU" if plan.case.on_gpu else "process"
    _print_memory(f"Memory of each training {device}", plan.memory, plan.case)
    if plan.engine is not None:
        _print_memory("Memory of each of vLLM's own GPUs", plan.engine, plan.case)
    print(f"Memory of each node, GB{' beside its GPUs' if plan.case.on_gpu else ''}")
    _print_phase(plan.host)
    volume, settings = plan.volume, plan.case.settings
    print("One run")
    lines = [
        ("rollouts", f"{volume.rollouts:,}", f"{settings.training.steps:,} steps"),
        (
            "tokens sampled", _millions(volume.rollout_tokens),
            f"at most {_millions(volume.most_rollout_tokens)}",
        ),
        ("tokens in updates", _millions(volume.update_tokens), "prompts and replayed ones too"),
        ("tokens of validation", _millions(volume.validation_tokens), ""),
    ]  # fmt: skip
    if volume.scored_tokens:
        lines.append(("tokens scored again", _millions(volume.scored_tokens), "of vLLM's rollouts"))
    if volume.stored:
        lines.append(
            (
                "replay buffer", f"{volume.buffer_bytes / GB:,.2f} GB",
                f"{volume.stored:,.0f} trajectories if none retires; ids and log-probabilities "
                f"{volume.stored_values / GB:,.2f} GB",
            )
        )  # fmt: skip
    by_column = ", ".join(
        f"{column.split('.')[1]} {size:.1f}"
        for column, size in log_bytes_a_token(plan.case).items()
    )
    lines += [
        ("disk: log", f"{volume.log_bytes / GB:,.2f} GB", f"bytes a token: {by_column}"),
        ("disk: checkpoints", f"{volume.checkpoint_bytes / GB:,.2f} GB", "the two that are kept"),
        ("disk: models", f"{volume.final_bytes / GB:,.2f} GB", "final, and best if kept"),
    ]
    for name, value, note in lines:
        print(f"  {name:22}{value:>12}  {note}".rstrip())
    if rates is not None:
        parts = hours(plan.case, volume, rates)
        told = ", ".join(f"{part} {value:,.2f}" for part, value in parts.items() if value)
        print(f"  {'time, hours':22}{sum(parts.values()):>12,.2f}  {told}; rough")


def _print_memory(title: str, memory: Memory, case: Case) -> None:
    unit, size = ("GB", GB) if memory.peak >= GB else ("MB", GB / 1000)
    print(f"{title}, {unit}")
    _print_phase(memory.always, size)
    for phase in memory.phases:
        if phase.items:
            print(f"  besides, in the {phase.name}")
            _print_phase(phase, size, "    ")
    limit = case.hardware.gpu_memory if case.on_gpu else None
    print(f"  {'peak':68}{memory.peak / size:>9,.2f}{f' of {limit:g}' if limit else ''}")


def _print_phase(phase: Phase, size: float = GB, indent: str = "  ") -> None:
    for item in phase.items:
        words = f"{indent}{item.what}"
        if len(words) > 69:  # the number goes below
            print(words)
            words = ""
        print(f"{words:70}{item.bytes / size:>9,.2f}")


def _print_sum(
    kinds: list[tuple[int, Plan]], study: Study, rates: Rates | None, rows: dict[str, int | None]
) -> None:
    def total(value: str) -> float:
        return sum(count * getattr(plan.volume, value) for count, plan in kinds)

    case = kinds[0][1].case
    samples, unknown = test_samples(study.any_run, rows)
    tested = 1 + len(study.runs)  # the base model too
    test_tokens = tested * samples * test_length(case)
    disk = total("log_bytes") + total("checkpoint_bytes") + total("final_bytes")
    print(f"\n== the whole study: {len(study.runs)} runs, {len(study.seeds)} seed(s) ==")
    print(f"  {'rollouts':22}{total('rollouts'):>12,.0f}")
    print(f"  {'tokens sampled':22}{_millions(total('rollout_tokens')):>12}")
    note = f"{tested} models, {samples:,} answers each"
    if unknown:
        note += f"; not counted, for their size is not known: {', '.join(unknown)}"
    print(f"  {'tokens of tests':22}{_millions(test_tokens):>12}  {note}")
    print(f"  {'disk':22}{disk / GB:>9,.2f} GB")
    if rates is None:
        print(
            "  No time is told without a throughput: give --rollout-tokens-per-second and\n"
            "  --update-tokens-per-second, of one GPU, or --measured with the file that\n"
            "  `python benchmarks/gpu_check.py --output FILE` writes on such a GPU."
        )
        return
    training = sum(
        count * sum(hours(plan.case, plan.volume, rates).values()) for count, plan in kinds
    )
    # Each run is tested by one process.
    testing = test_tokens / rates.rollout / 3600
    devices = case.hardware.nodes * (case.hardware.gpus or case.hardware.processes)
    print(
        f"  {'time, hours':22}{training + testing:>12,.2f}  one run after the other: training "
        f"{training:,.2f}, tests {testing:,.2f} on one GPU\n"
        f"  {'GPU-hours':22}{training * devices + testing:>12,.1f}"
    )


def _millions(tokens: float) -> str:
    return f"{tokens / 1e6:,.1f} M"
