"""The rows of one made-up run, by table, from what happened in it."""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa
from synthetic_course import (
    BATCH,
    GROUPS,
    KEPT,
    REPLAYED,
    STEP_COUNT,
    Array,
    Course,
    K,
    Responses,
    make_responses,
    play,
    skill,
)

from exgrpo.questions import Question
from exgrpo.tables import TABLES

PHASES = ("rollout", "grade", "select", "update")

Frames = dict[str, pl.DataFrame]


def make_run(
    run: str,
    arm: str,
    train: Sequence[Question],
    rng: np.random.Generator,
    tokens: bool,
) -> Frames:
    """Every table of a run but evaluations and vocabulary; `tokens` only if asked for."""
    levels = np.array([question.level for question in train])
    ids = pl.Series([question.id for question in train])
    responses = make_responses(train, run)
    course = play(arm, skill(levels, arm, rng), rng)
    rows, candidates = _rows(run, arm, course, responses, levels, ids, rng)
    frames = {
        "trajectories": rows,
        "candidates": candidates,
        "experience": _experience(run, arm, course, rows, ids),
        "steps": _steps(arm, rows, course, rng),
    }
    if tokens:
        frames["tokens"] = _tokens(rows, responses, rng)
    return {name: _shaped(frame, name) for name, frame in frames.items() if len(frame)}


def _rows(
    run: str,
    arm: str,
    course: Course,
    responses: Responses,
    levels: Array,
    ids: pl.Series,
    rng: np.random.Generator,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The trajectories of a run, and the candidates that its replayed ones were chosen from."""
    total = STEP_COUNT * BATCH
    row = np.arange(total)
    step, group, slot = row // BATCH + 1, row // K % GROUPS, row % K
    question, right = course.question.ravel().repeat(K), course.right.ravel()
    answer = responses.draw(question, right, rng)
    said = responses.frame
    flawed = ~said["chain_valid"].to_numpy()[answer]
    length = said["length"].to_numpy()[answer]
    calm = 0.35 - 0.2 * step / STEP_COUNT + 0.01 * levels[question]
    entropy = calm * (1 + 0.5 * ~right + 0.3 * flawed) * rng.lognormal(0, 0.35, total)
    replays = np.zeros(total, bool)
    source = row.copy()
    candidates = pl.DataFrame()
    if REPLAYED[arm]:
        candidates, chosen = _candidates(run, arm, course, entropy, length, ids, rng)
        at = (chosen["step"].to_numpy() - 1) * BATCH + chosen["group"].to_numpy() * K
        replays[at] = True
        source[at] = chosen["row"].to_numpy()
        entropy[at] = chosen["mean_entropy"].to_numpy()
        answer[at] = answer[source[at]]
        candidates = candidates.drop("row")
    length = said["length"].to_numpy()[answer]
    behaviour = np.where(replays, entropy[source], entropy) * 1.05
    nll = behaviour + replays * rng.normal(0.05, 0.05, total)
    successes, graded = (each.ravel().repeat(K) for each in (course.successes, course.graded))
    bucket = course.after.ravel().repeat(K)
    signal = bucket > 0
    spread = np.abs(rng.normal(0, 0.02 + 0.1 * replays))
    drawn = np.where(course.experiential, course.before, 0).ravel().repeat(K)
    share = successes / np.maximum(graded, 1)
    frame = said.select(pl.all().gather(pl.lit(answer))).drop("token_ids", "correct")
    floats = {
        "mean_entropy": entropy,
        "summed_entropy": entropy * length,
        "nll": nll,
        "behaviour_nll": behaviour,
        "advantage": right - share,
    }
    ratios = {
        "ratio_mean": 1 + rng.normal(0, 0.01, total) + replays * (behaviour - nll),
        "ratio_min": 1 - 3 * spread,
        "ratio_max": 1 + 4 * spread,
        "ratio_ess": 1 - spread,
        "weight_mean": 1 + rng.normal(0, 0.01, total) - 0.1 * replays,
        "weight_min": 1 - 2 * spread,
        "weight_max": 1 + 2 * spread,
        "weight_ess": 1 - spread / 2,
        "clipped_share": np.where(rng.random(total) < 0.1, 1 / length, 0.0),
    }
    return frame.with_columns(
        pl.Series("answer", answer),
        trajectory=_name(run, row),
        run=pl.lit(run),
        step=pl.Series(step),
        group=pl.Series(group),
        slot=pl.Series(slot),
        question=ids.gather(question),
        level=pl.Series(levels[question]),
        experiential=pl.Series(course.experiential.ravel().repeat(K)),
        replayed=pl.Series(replays),
        trained=pl.lit(True),
        source=pl.Series(_name(run, source)).zip_with(pl.Series(replays), pl.Series([None])),
        birth_step=pl.Series(source // BATCH + 1),
        correct=_null_where(right, course.ungraded.ravel()),
        group_successes=pl.Series(successes),
        group_size=pl.Series(graded),
        bucket_drawn=_null_where(drawn, drawn == 0),
        bucket=_null_where(bucket, ~signal),
        difficulty=_null_where(
            np.array(["hard", "medium", "easy"])[(share > 0.25).astype(int) + (share >= 0.75)],
            ~signal,
        ),
        **{name: pl.Series(_single(value)) for name, value in floats.items()},
        **{name: _null_where(_single(value), ~signal) for name, value in ratios.items()},
    ), candidates


def _candidates(
    run: str,
    arm: str,
    course: Course,
    entropy: Array,
    length: Array,
    ids: pl.Series,
    rng: np.random.Generator,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Every stored trajectory of the drawn questions; and the chosen ones, with their row."""
    sign = REPLAYED[arm] or 0
    step, group = np.nonzero(course.experiential)
    stored = course.stored[step, group]
    there = stored >= 0
    now = entropy[stored] * rng.lognormal(-0.1, 0.2, stored.shape)
    metrics = {
        "mean_entropy": now,
        "summed_entropy": now * length[stored],
        "nll": now * rng.lognormal(0.05, 0.05, stored.shape),
        "length": length[stored],
        "birth_entropy": entropy[stored],
        "released": now * rng.lognormal(-0.7, 0.3, stored.shape),
    }
    ranks = {
        f"{name}_rank": np.where(there, value, np.inf).argsort(1).argsort(1)
        for name, value in metrics.items()
    }
    rank = np.where(there, sign * now, np.inf).argsort(1).argsort(1)
    count = there.sum()
    wide = {"step": step + 1, "group": group, "question": course.question[step, group]}
    frame = pl.DataFrame(
        {name: value.repeat(there.sum(1)) for name, value in wide.items()}
        | {"row": stored[there], "birth_step": stored[there] // BATCH + 1}
        | {
            name: value[there] if name == "length" else _single(value[there])
            for name, value in metrics.items()
        }
        | {name: value[there] for name, value in ranks.items()}
        | {"rank": rank[there]}
    ).with_columns(
        run=pl.lit(run),
        question=ids.gather(pl.Series(wide["question"].repeat(there.sum(1)))),
        source=_name(run, stored[there]),
        correct=pl.Series(np.ones(count, bool)),
        chosen=pl.col("rank") == 0,
    )
    return frame, frame.filter("chosen")


def _experience(
    run: str, arm: str, course: Course, rows: pl.DataFrame, ids: pl.Series
) -> pl.DataFrame:
    """What changed in the buffer: buckets, trajectories stored and those that made room."""
    if REPLAYED[arm] is None:
        return pl.DataFrame()
    before, after = course.before, course.after
    solved = (course.successes == course.graded) & (course.graded > 0)
    fresh = course.right.copy()
    fresh[..., 0] &= ~(course.experiential & bool(REPLAYED[arm]))
    new = fresh.any(2) & (after > 0)
    step, group = np.indices(before.shape)
    row = step * BATCH + group * K + fresh.argmax(2)
    happened = {
        "entered": ((before == 0) & (after > 0), None),
        "moved": ((before > 0) & (after > 0) & (before != after), None),
        "retired": (solved, None),
        "left": ((before > 0) & (after == 0) & ~solved, None),
        "stored": (new, row),
        "evicted": (new & (course.stored[..., -1] >= 0), course.stored[..., -1]),
    }
    replayed = rows.filter("replayed").select(
        "step",
        "run",
        "question",
        event=pl.lit("replayed"),
        trajectory="source",
        bucket_before="bucket_drawn",
        bucket_after="bucket",
    )
    changes = [
        pl.DataFrame({"step": step[which] + 1}).with_columns(
            run=pl.lit(run),
            question=ids.gather(pl.Series(course.question[which])),
            event=pl.lit(event),
            trajectory=pl.lit(None, pl.String) if of is None else _name(run, of[which]),
            bucket_before=_null_where(before[which], before[which] == 0),
            bucket_after=_null_where(after[which], after[which] == 0),
        )
        for event, (which, of) in happened.items()
    ]
    return pl.concat([replayed, *changes]).sort("step", "question", maintain_order=True)


def _steps(arm: str, rows: pl.DataFrame, course: Course, rng: np.random.Generator) -> pl.DataFrame:
    """The metrics of every step, as far as its trajectories tell them."""
    fresh, first = ~pl.col("replayed"), pl.col("slot") == 0
    right, length = pl.col("correct").cast(pl.Float64), pl.col("length")
    k, size = pl.col("group_successes"), pl.col("group_size")
    metrics = rows.group_by("step", maintain_order=True).agg(
        run=pl.col("run").first(),
        replay_on=pl.col("experiential").any(),
        reward=right.filter(fresh).mean(),
        fresh_reward=right.filter(fresh & ~pl.col("experiential")).mean(),
        experiential_reward=right.filter(fresh & pl.col("experiential")).mean(),
        groups=pl.lit(GROUPS),
        experiential_groups=(first & pl.col("experiential")).sum(),
        replay_groups=pl.col("replayed").sum(),
        signal_groups=(first & (k > 0) & (k < size)).sum(),
        updated_groups=(first & (k > 0) & (k < size)).sum(),
        solved_groups=(first & (k == size)).sum(),
        failed_groups=(first & (k == 0)).sum(),
        ungraded=pl.col("correct").null_count(),
        entropy=pl.col("summed_entropy").filter(fresh).sum() / length.filter(fresh).sum(),
        length=length.filter(fresh).mean(),
        truncated_share=(pl.col("finish") == "length").filter(fresh).mean(),
        clipped_share=pl.col("clipped_share").mean(),
        ratio_mean_fresh=pl.col("ratio_mean").filter(fresh).mean(),
        ratio_mean_replayed=pl.col("ratio_mean").filter("replayed").mean(),
        weight_mean_replayed=pl.col("weight_mean").filter("replayed").mean(),
        ratio_ess_replayed=pl.col("ratio_ess").filter("replayed").mean(),
        sampled_tokens=length.filter(fresh).sum(),
        trained_tokens=length.filter("trained").sum(),
        token_floats_logged=pl.len(),
    )
    keeps = REPLAYED[arm] is not None
    drawn = {
        "loss": rng.normal(0, 0.02, STEP_COUNT),
        "grad_norm": rng.lognormal(0, 0.3, STEP_COUNT),
        "rollout_seconds": rng.lognormal(-1.6, 0.1, STEP_COUNT),
        "grade_seconds": rng.lognormal(-4, 0.1, STEP_COUNT),
        "select_seconds": keeps * rng.lognormal(-2.5, 0.1, STEP_COUNT),
        "update_seconds": rng.lognormal(-1.2, 0.1, STEP_COUNT),
    }
    buckets = [
        (course.after == bucket).sum(1) - (course.before == bucket).sum(1) for bucket in range(1, K)
    ]
    sizes = keeps * np.cumsum(np.stack(buckets, 1), 0)
    solved = keeps * (course.successes == course.graded).sum(1)
    seen = np.unique(course.question, return_index=True)[1] // GROUPS
    return (
        metrics.with_columns(
            total_sampled_tokens=pl.col("sampled_tokens").cum_sum(),
            buffer_questions=pl.Series(sizes.sum(1)),
            buffer_trajectories=pl.Series(KEPT * sizes.sum(1)),
            bucket_sizes=pl.Series(sizes.tolist()),
            retired_questions=pl.Series(np.cumsum(solved)),
            distinct_questions=pl.Series(np.cumsum(np.bincount(seen, minlength=STEP_COUNT))),
            skipped_updates=pl.lit(0),
            **{name: pl.Series(value) for name, value in drawn.items()},
        )
        .with_columns(seconds=pl.sum_horizontal(f"{phase}_seconds" for phase in PHASES))
        .with_columns(run_seconds=pl.col("seconds").cum_sum())
    )


def _tokens(rows: pl.DataFrame, responses: Responses, rng: np.random.Generator) -> pl.DataFrame:
    """Token ids as the responses have them; floats drawn around the trajectory's mean."""
    ids = responses.frame["token_ids"].gather(rows["answer"])
    starts = np.concatenate([[0], np.cumsum(rows["length"].to_numpy())])
    mean = rows["mean_entropy"].to_numpy().repeat(rows["length"].to_numpy())
    entropies = mean * rng.gamma(0.5, 2, len(mean))
    logprobs = -mean * rng.gamma(0.5, 2, len(mean))
    floats = {"entropies": entropies, "behaviour_logprobs": logprobs, "logprobs": logprobs * 1.02}
    return rows.select("trajectory", "run", "step", "group", "slot").with_columns(
        ids.alias("token_ids"),
        **{name: _lists(value, starts) for name, value in floats.items()},
    )


def evaluate(
    run: str,
    benchmark: str,
    asked: Sequence[Question],
    responses: Responses,
    share: Array,
    steps: Sequence[int],
    samples: int,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Rows of `evaluations`; share [step, question] is how often a response is right."""
    step = np.array(steps).repeat(len(asked) * samples)
    question = np.tile(np.arange(len(asked)).repeat(samples), len(steps))
    right = rng.random(len(step)) < share[step, question]
    answer = responses.draw(question, right, rng)
    entropy = 0.35 * (1 + 0.5 * ~right) * rng.lognormal(0, 0.35, len(step))
    frame = responses.frame.select(pl.all().gather(pl.lit(pl.Series(answer))))
    return _shaped(
        frame.with_columns(
            run=pl.lit(run),
            step=pl.Series(step),
            benchmark=pl.lit(benchmark),
            question=pl.Series([each.id for each in asked]).gather(pl.Series(question)),
            sample=pl.Series(np.tile(np.arange(samples), len(steps) * len(asked))),
            level=pl.Series([each.level for each in asked]).gather(pl.Series(question)),
            temperature=pl.lit(1.0),
            mean_entropy=pl.Series(_single(entropy)),
            nll=pl.Series(_single(entropy * 1.05)),
        ),
        "evaluations",
    )


def _name(run: str, row: Array) -> pl.Series:
    """The ids of the trajectories in these rows of the run."""
    parts = {"step": row // BATCH + 1, "group": row // K % GROUPS, "slot": row % K}
    return (
        pl.DataFrame(parts)
        .select(pl.concat_str(pl.lit(run), "step", "group", "slot", separator=":"))
        .to_series()
    )


def _null_where(values: Array, missing: Array) -> pl.Series:
    return pl.Series(values).set(pl.Series(missing), None)


def _single(values: Array) -> Array:
    """As the trainer logs them: numbers of single precision, in double."""
    return values.astype(np.float32).astype(np.float64)


def _lists(values: Array, starts: Array) -> pl.Series:
    lists = pa.ListArray.from_arrays(
        pa.array(starts, pa.int32()), pa.array(values.astype(np.float32))
    )
    series = pl.from_arrow(lists)
    assert isinstance(series, pl.Series)
    return series


def _shaped(frame: pl.DataFrame, table: str) -> pl.DataFrame:
    """The declared columns and types; null where the frame has no such column."""
    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in TABLES[table].polars_schema.items()
    )
