"""Token numbers: weights as they were trained on, what stands out, and how it is drawn."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from golden_lake import rows

from analysis import token_weights
from analysis.surprising import most_surprising, spread
from analysis.token_weights import Objective, read_objective, weigh, weights
from app.components.token_view import SCALES, tokens_html

OBJECTIVE = Objective("ratio", 0.1, 0.083, "fresh", "none", 0.2, 0.2, "recorded")
RATIO = np.array([0.5, 1.0, 2.0])


def frame(logged: dict[str, Any]) -> pl.DataFrame:
    """A row of the table `tokens` as `read_tokens` gives it."""
    size = len(logged["token_ids"])
    floats = {"behaviour_logprobs": 1, "logprobs": 1, "entropies": 1}
    return pl.DataFrame(
        {
            "position": range(size),
            "token_id": logged["token_ids"],
            "text": ["x"] * size,
            "behaviour_logprob": logged["behaviour_logprobs"],
            "logprob": logged["logprobs"] or [None] * size,
            "entropy": logged["entropies"] or [None] * size,
        },
        schema_overrides=dict.fromkeys(floats, pl.Float32)
        | {"logprob": pl.Float32, "behaviour_logprob": pl.Float32, "entropy": pl.Float32},
    )


def test_a_ratio_beyond_all_numbers_is_drawn() -> None:
    logged = {"token_ids": [1], "behaviour_logprobs": [-800.0], "logprobs": [0.0]}
    page = tokens_html(frame(logged | {"entropies": [0.1]}), SCALES["ratio"])
    assert "ratio          inf" in page and "log-ratio      800.0000" in page


def test_weights_of_real_tokens_have_the_mean_and_the_ends_that_training_logged() -> None:
    objectives = {row["run"]: read_objective(row["settings"]) for row in rows("runs")}
    tokens = {row["trajectory"]: row for row in rows("tokens")}
    seen = {True: 0, False: 0}
    clipped = 0
    for row in rows("trajectories"):
        logged = tokens.get(row["trajectory"])
        if logged is None or logged["logprobs"] is None or row["weight_mean"] is None:
            continue
        found = weigh(frame(logged), row, objectives[row["run"]])
        assert found.missing is None
        for name in ("ratio", "weight"):
            values = found.tokens[name]
            assert values.mean() == pytest.approx(row[f"{name}_mean"], rel=1e-4)
            assert values.min() == pytest.approx(row[f"{name}_min"], rel=1e-4)
            assert values.max() == pytest.approx(row[f"{name}_max"], rel=1e-4)
        assert found.tokens["clipped"].mean() == pytest.approx(row["clipped_share"])
        kept = found.tokens.filter(~pl.col("clipped"))
        assert np.allclose(kept["push"], kept["weight"] * row["advantage"])
        assert (found.tokens.filter(pl.col("clipped"))["push"] == 0).all()
        seen[row["replayed"]] += 1
        clipped += int(found.tokens["clipped"].sum())
    assert min(seen.values()) > 10
    assert clipped > 0


@pytest.mark.parametrize(
    ("replayed", "advantage", "clip", "shaping", "weight", "clipped"),
    [
        (False, 1.0, "none", "ratio", [0.5, 1, 2], [False, False, False]),
        (False, 1.0, "fresh", "ratio", [0.5, 1, 1.2], [False, False, True]),
        (False, -1.0, "fresh", "ratio", [0.8, 1, 2], [True, False, False]),
        (True, 1.0, "fresh", "ratio", [0.5 / 0.6, 1 / 1.1, 2 / 2.1], [False, False, False]),
        (True, 1.0, "all", "ratio", [0.5 / 0.6, 1 / 1.1, 1.2 / 1.3], [False, False, True]),
        (True, 1.0, "none", "constant", [0.0415, 0.083, 0.166], [False, False, False]),
        (True, -1.0, "all", "none", [0.8, 1, 2], [True, False, False]),
    ],
)
def test_weights_by_hand(
    replayed: bool,
    advantage: float,
    clip: str,
    shaping: str,
    weight: list[float],
    clipped: list[bool],
) -> None:
    objective = Objective(shaping, 0.1, 0.083, clip, clip, 0.2, 0.2, "recorded")
    found = weights(RATIO, advantage, replayed, clip, objective)
    assert found[0] == pytest.approx(weight)
    assert list(found[1]) == clipped


LOGGED = {"token_ids": [1, 2], "behaviour_logprobs": [-1.0, -2.0], "entropies": None}
ROW = {"weight_mean": 1.0, "advantage": 0.5, "replayed": False, "clipped_share": 0.0}
ROW |= {f"{name}_{kind}": None for name in ("ratio",) for kind in ("mean", "min", "max")}
ROW |= {"weight_min": None, "weight_max": None}


@pytest.mark.parametrize(
    ("logprobs", "change", "objective", "why"),
    [
        ([-1.0, -2.0], {}, None, token_weights.NO_SETTINGS),
        ([-1.0, -2.0], {"weight_mean": None}, OBJECTIVE, token_weights.NO_GRADIENT),
        (None, {}, OBJECTIVE, token_weights.NOT_LOGGED),
        ([-1.5, -2.0], {}, OBJECTIVE, token_weights.NOT_AGREEING),
        (
            [-1.5, -2.0],
            {"replayed": True},
            Objective(**{**vars(OBJECTIVE), "denominator": "current"}),
            token_weights.OTHER_DENOMINATOR,
        ),
    ],
)
def test_why_there_are_no_weights_is_said(
    logprobs: list[float] | None, change: dict[str, Any], objective: Objective | None, why: str
) -> None:
    found = weigh(frame({**LOGGED, "logprobs": logprobs}), {**ROW, **change}, objective)
    assert found.missing == why
    assert found.tokens["weight"].is_null().all()
    assert "no colour at 1" in tokens_html(found.tokens, SCALES["weight"])


@pytest.mark.parametrize(
    "settings", [None, "", "{", "[]", "{}", '{"objective": {}}', '{"objective": {"beta": "x"}}']
)
def test_settings_of_another_kind_are_no_objective(settings: str | None) -> None:
    assert read_objective(settings) is None


def test_the_objective_is_read_from_the_settings() -> None:
    held = {**vars(OBJECTIVE), "standardise": False}
    assert read_objective(json.dumps({"objective": held, "arm": "x"})) == OBJECTIVE


TOKENS = pl.DataFrame(
    {
        "position": [0, 1, 2, 3],
        "token_id": [7, 8, 9, 5],
        "text": ["<img src=x onerror=alert(1)>", '"><script>', None, ""],
        "behaviour_logprob": [-1.0, -0.5, -3.0, None],
        "logprob": [-0.5, None, -4.0, -1.0],
        "entropy": [1.5, None, 0.2, float("nan")],
    }
)


@pytest.mark.parametrize(
    ("by", "positions", "values"),
    [
        ("improbable", [2, 0], [3.0, 1.0]),
        ("entropy", [0, 2], [1.5, 0.2]),
        ("ratio", [2, 0], [1.0, 0.5]),
    ],
)
def test_the_most_surprising_tokens(by: Any, positions: list[int], values: list[float]) -> None:
    found = most_surprising(TOKENS, by, 2)
    assert found["position"].to_list() == positions
    assert found["value"].to_list() == pytest.approx(values)


def test_a_surprising_token_has_the_text_around_it() -> None:
    tokens = pl.DataFrame({"position": range(20), "text": list("abcdefghijklmnopqrst")})
    numbers = pl.Series([0.0] * 10 + [9.0] + [0.0] * 8 + [8.0])
    tokens = tokens.with_columns(entropy=numbers)
    found = most_surprising(tokens, "entropy", 2)
    assert found.rows() == [(10, "efghij", "k", "lmnopq", 9.0), (19, "nopqrs", "t", "", 8.0)]


def test_what_stands_out_is_far_and_farther_than_the_rest() -> None:
    values = pl.Series([0.0, None, 3.0, float("nan"), -5.0, 1.0])
    found = spread(values, 0.0, 0.5, top=2)
    assert found is not None
    assert (found.least, found.greatest, found.farthest) == (-5.0, 3.0, frozenset({2, 4}))
    equal = spread(pl.Series([2.0] * 10), 0.0, 0.5)
    assert equal is not None and equal.farthest == frozenset()
    near = spread(pl.Series([0.1, 0.4]), 0.0, 0.5)
    assert near is not None and near.farthest == frozenset()
    assert spread(pl.Series([None, float("nan")], dtype=pl.Float64), 0.0, 0.5) is None


def test_tokens_are_escaped_and_coloured_by_number() -> None:
    page = tokens_html(TOKENS, SCALES["entropy"])
    assert "<img" not in page
    assert "<script" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert "rgba(226,122,20,0.800)" in page
    assert "background:transparent" in page
    assert "ratio          1.6487" in page
    assert "not logged" in page


def test_a_token_without_text_is_not_an_empty_one() -> None:
    page = tokens_html(TOKENS, SCALES["entropy"])
    assert ">�</span>" in page
    assert "><i>∅</i></span>" in page


def test_the_legend_has_both_ends_and_the_colour_says_which_side() -> None:
    numbers = TOKENS.with_columns(
        weight=pl.Series([1.0, 0.0, 1.5, 9.0]),
        push=pl.Series([0.5, 0.0, -2.0, 0.0]),
        clipped=pl.Series([False, True, False, False]),
    )
    page = tokens_html(numbers, SCALES["weight"])
    assert "factor of the advantage <span>0<b" in page
    assert "</b>2  and beyond" in page
    assert "here from 0 to 9" in page
    colours = ["213,94,0,0.000", "0,114,178,0.800", "213,94,0,0.400", "213,94,0,0.800"]
    assert [f"rgba({colour})" in page for colour in colours[1:]] == [True] * 3
    assert "weight         0.0000, clipped: no gradient" in page
    pushed = tokens_html(numbers, SCALES["advantage"])
    assert "adv. × weight  -2.0000" in pushed
    assert '<span class="below" tabindex="0" style="background:rgba(0,114,178,0.800)"' in pushed
    assert '<span class="above" tabindex="0" style="background:rgba(213,94,0,0.400)"' in pushed


def test_a_part_shows_its_tokens_and_marks_the_chosen_one() -> None:
    page = tokens_html(TOKENS, SCALES["entropy"], first=1, most=2, chosen=2)
    assert page.count("data-tip=") == 2
    assert 'class="above chosen" tabindex="0"' in page
    assert "token 1," in page and "token 2," in page
    assert "here from 0.2 to 1.5" in page  # of the whole trajectory, not of the part
