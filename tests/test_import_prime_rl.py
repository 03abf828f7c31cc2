"""Token exports of prime-rl: tokens, their means and rewards, worked out again by plain loops."""

from pathlib import Path

import polars as pl
import pytest
from foreign_logs import Row, ask, prime_rl, write_lines

from exgrpo.errors import UserError
from pipeline.imports.command import import_file


def prime_log(folder: Path) -> list[Row]:
    """Two workers at step 3 with two sequences each (case o17), and a step 4 that is not stable."""
    rows = [
        prime_rl([5, 6], [10 + i, 3, 2], reward, rank=i // 2)
        for i, reward in enumerate([1.0, 0.0, 1.0, 1.0])
    ]
    for rank in (0, 1):
        file = folder / "token_exports" / "step_3" / f"rank_{rank}.jsonl"
        write_lines(file, rows[2 * rank : 2 * rank + 2])
    (folder / "token_exports" / "step_3" / "STABLE").touch()
    write_lines(folder / "token_exports" / "step_4" / "rank_0.jsonl", rows[:1])
    return rows


def test_prime_rl_keeps_the_rewards_and_tokens_of_every_worker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    rows = prime_log(tmp_path / "run")
    import_file(tmp_path / "run", None, results)
    found = ask(results, "SELECT * FROM trajectories ORDER BY slot").to_dicts()
    assert [r["correct"] for r in found] == [True, False, True, True]
    assert ask(results, "SELECT reward FROM steps").item() == 0.75
    assert {r["group"] for r in found} == {0} and {r["step"] for r in found} == {3}
    for row, trajectory in zip(rows, found, strict=True):
        kept = [at for at, trained in enumerate(row["loss_mask"]) if trained]
        for column, key, sign in (
            ("mean_entropy", "entropy", 1),
            ("nll", "trainer_logprobs", -1),
            ("behaviour_nll", "inference_logprobs", -1),
            ("ratio_mean", "importance_ratio", 1),
            ("clipped_share", "is_masked", 1),
        ):
            mean = sign * sum(row[key][at] for at in kept) / len(kept)
            assert trajectory[column] == pytest.approx(mean), column
        ratios = [row["importance_ratio"][at] for at in kept]
        assert trajectory["ratio_ess"] == pytest.approx(
            sum(ratios) ** 2 / sum(r * r for r in ratios) / len(ratios)
        )
        assert (trajectory["ratio_min"], trajectory["ratio_max"]) == (min(ratios), max(ratios))
        assert trajectory["advantage"] == row["advantages"][0]
        assert (trajectory["length"], trajectory["response"]) == (3, None)
    tokens = pl.read_parquet(results / "lake" / "tokens" / "import-run.parquet").sort("slot")
    assert tokens["token_ids"].to_list() == [row["token_ids"][2:] for row in rows]
    assert tokens["entropies"].to_list() == [row["entropy"][2:] for row in rows]
    assert tokens["logprobs"].to_list() == [row["trainer_logprobs"][2:] for row in rows]
    assert tokens["behaviour_logprobs"].to_list() == [row["inference_logprobs"][2:] for row in rows]
    said = capsys.readouterr().out
    assert "left out: step_4: no marker STABLE" in said
    assert "  mismatch_kl: 4\n" in said


def test_prime_rl_gaps_are_null_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        prime_rl([1], [2, 3, 4], 1.0, entropy=[0.5, 0.5, None, 0.5], rewards=[None] * 4),
        prime_rl([1], [2, 3, 4], 1.0, advantages=[0, 0.1, 0.2, 0.3], is_masked=[None] * 4),
        prime_rl([1], [2, 3, 4], 1.0, loss_mask=[False, True, False, True]),
    ]
    file = write_lines(tmp_path / "step_3" / "rank_0.jsonl", rows)
    with pytest.raises(
        UserError, match=r"no step has its marker STABLE.* step_3: no marker STABLE"
    ):
        import_file(file, "gaps", tmp_path / "results")
    (tmp_path / "step_3" / "STABLE").touch()
    import_file(file, "gaps", tmp_path / "results")
    found = ask(tmp_path / "results", "SELECT * FROM trajectories ORDER BY slot").to_dicts()
    assert [r["mean_entropy"] for r in found] == [None, pytest.approx(0.25), pytest.approx(0.375)]
    assert [r["correct"] for r in found] == [None, True, True]
    assert [r["advantage"] for r in found] == [0.25, None, 0.25]
    assert [r["clipped_share"] for r in found] == [pytest.approx(1 / 3), None, 0.5]
    assert [r["length"] for r in found] == [3, 3, 2]
    entropy = ask(tmp_path / "results", "SELECT entropy FROM steps").item()
    assert entropy == pytest.approx((3 * 0.25 + 2 * 0.375) / 5)  # of the tokens that have one
    said = capsys.readouterr().out
    assert "1 sequences whose `entropy` has gaps" in said
    assert "1 sequences whose `advantages` differs by token" in said
    assert "1 tokens after the first response token that the model did not write" in said


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"schema_version": 2}, "line 1: key `schema_version` is 2. This reads version 1"),
        ({"entropy": [0.5]}, "key `entropy` is .*Give a list of 2 values"),
        ({"entropy": ["x", "y"]}, "key `entropy` .* a value that does not fit"),
        ({"token_ids": [1, 2**31]}, "key `token_ids` .* does not fit"),
        ({"token_ids": [1, None]}, "key `token_ids` .* does not fit"),
        ({"loss_mask": [False, False]}, "`loss_mask` marks no token"),
    ],
)
def test_prime_rl_lines_that_are_refused(change: Row, wanted: str, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "rank_0.jsonl", [prime_rl([1], [2], 1.0) | change])
    (tmp_path / "STABLE").touch()
    with pytest.raises(UserError, match=wanted):
        import_file(file, None, tmp_path / "results")


def test_no_stable_step_and_several_runs_are_refused(tmp_path: Path) -> None:
    write_lines(tmp_path / "token_exports" / "step_1" / "rank_0.jsonl", [prime_rl([1], [2], 1.0)])
    with pytest.raises(UserError, match="no step has its marker STABLE"):
        import_file(tmp_path, "x", tmp_path / "results")
    rows = [prime_rl([1], [2], 1.0, run_id=run) for run in ("run_a", "run_b")]
    file = write_lines(tmp_path / "step_1" / "rank_0.jsonl", rows)
    (tmp_path / "step_1" / "STABLE").touch()
    with pytest.raises(UserError, match="several runs: run_a, run_b"):
        import_file(file, "x", tmp_path / "results")
    assert not (tmp_path / "results").exists()
