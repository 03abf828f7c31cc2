"""The arms: each file loads, says what its row of the README says, and changes only what it should.

CHANGES is written by hand, apart from the files: what each ablation is, in settings.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from exgrpo.settings import RunSettings
from exgrpo.studies import load_study

CONFIG = Path(__file__).resolve().parents[1] / "config"
ARMS = sorted(path.stem for path in (CONFIG / "arms").glob("*.yaml"))

# arm: what it is compared with (None: the study's own settings), and every setting that differs.
CHANGES: dict[str, tuple[str | None, dict[str, Any]]] = {
    "on_policy": (None, {}),
    "on_policy_no_clip": ("on_policy", {"objective.clip_after_start": "none"}),
    "question_replay": ("exgrpo", {"experience.replay": "question"}),
    "exgrpo": (
        None,
        {"experience.replay": "trajectory", "objective.clip_after_start": "none"},
    ),
    "exgrpo_released": (
        "exgrpo",
        {
            "batch.unused_fresh": "discarded",
            "buffer.store_truncated": True,
            "buffer.duplicates": "text",
            "buffer.retired_fresh": "leave_next_epoch",
            "experience.metric": "released",
            "objective.normaliser": "constant_sum",
            "objective.entropy_bonus": 0.001,
        },
    ),
    "exgrpo_paper_literal": ("exgrpo", {"experience.sigma_unit": "accuracy"}),
    "no_question_selection": ("exgrpo", {"experience.draw": "questions"}),
    "no_trajectory_selection": ("exgrpo", {"experience.order": "random"}),
    "neither": ("exgrpo", {"experience.draw": "questions", "experience.order": "random"}),
    "highest_entropy": ("exgrpo", {"experience.order": "highest"}),
    "lowest_nll": ("exgrpo", {"experience.metric": "nll"}),
    "shortest": ("exgrpo", {"experience.metric": "length"}),
    "released_entropy": ("exgrpo", {"experience.metric": "released"}),
    "no_shaping": ("exgrpo", {"objective.shaping": "none"}),
    "no_shaping_clip": (
        "exgrpo",
        {
            "objective.shaping": "none",
            "objective.clip_before_start": "all",
            "objective.clip_after_start": "all",
        },
    ),
    "constant_weight": ("exgrpo", {"objective.shaping": "constant"}),
    "no_is": ("exgrpo", {"objective.denominator": "current"}),
    "rho_25": ("exgrpo", {"experience.share": 0.25}),
    "rho_75": ("exgrpo", {"experience.share": 0.75}),
    "rho_12": ("exgrpo", {"experience.share": 0.125}),
    "sigma_050": ("exgrpo", {"experience.sigma": 0.5}),
    "buffer_share_10": ("exgrpo", {"experience.buffer_share": 0.1}),
    "sigma_050_literal": (
        "exgrpo",
        {"experience.sigma": 0.5, "experience.sigma_unit": "accuracy"},
    ),
    "sigma_150_literal": (
        "exgrpo",
        {"experience.sigma": 1.5, "experience.sigma_unit": "accuracy"},
    ),
    "sigma_150": ("exgrpo", {"experience.sigma": 1.5}),
    "mu_25": ("exgrpo", {"experience.mu": 0.25}),
    "no_retirement": ("exgrpo", {"buffer.retire": False}),
    "retired_review": ("exgrpo", {"buffer.review_share": 0.1}),
    "start_at_0": ("exgrpo", {"experience.start": "at_once"}),
    "start_50": ("exgrpo", {"experience.start": 0.5}),
    "exgrpo_clip": ("exgrpo", {"objective.clip_after_start": "fresh"}),
    "exgrpo_max_age": ("exgrpo", {"buffer.max_age": 10}),
    "continual": ("exgrpo", {"training.start_from": "on_policy"}),
    "continual_on_policy": ("on_policy", {"training.start_from": "on_policy"}),
    "masked_full": ("on_policy", {}),
    "masked_easy": ("on_policy", {"objective.difficulty": "easy"}),
    "masked_medium": ("on_policy", {"objective.difficulty": "medium"}),
    "masked_hard": ("on_policy", {"objective.difficulty": "hard"}),
    **{
        f"masked_{name}_matched": (
            f"masked_{name}",
            {"batch.learning_groups": 4, "batch.max_rounds": 16},
        )
        for name in ("easy", "medium", "hard", "full")
    },
    "grpo": ("on_policy", {"objective.standardise": True, "objective.normaliser": "sequence"}),
    "dapo_sampling": (
        "on_policy",
        {"batch.learning_groups": "all", "batch.max_rounds": 10, "objective.clip_high": 0.28},
    ),
    "repo_recent": (
        "grpo",
        {
            "buffer.store": "all",
            "buffer.duplicates": "kept",
            "buffer.per_question": 16,
            "buffer.count_replayed": False,
            "buffer.retire": False,
            "experience.replay": "trajectory",
            "experience.order": "recent",
            "experience.start": "at_once",
            "join.visit": "fresh",
            "join.count": 8,
            "join.place": "beside",
            "objective.baseline": "apart",
            "objective.shaping": "none",
            "objective.clip_before_start": "all",
            "objective.clip_after_start": "all",
        },
    ),
    "repo_reward": ("repo_recent", {"experience.order": "reward"}),
    "repo_variance": ("repo_recent", {"experience.order": "variance"}),
    "remix": (
        "neither",
        {
            "batch.passes": 2,
            "buffer.store": "all",
            "buffer.duplicates": "kept",
            "buffer.max_age": 10,
            "buffer.retire": False,
            "experience.start": "at_once",
            "join.count": 8,
            "objective.shaping": "none",
            "objective.clip_before_start": "all",
            "objective.clip_after_start": "all",
            "objective.kl_reference": 0.005,
            "objective.kl_previous": 0.005,
            "training.reincarnate_at": 0.5,
        },
    ),
    "luffy_expert": (
        "exgrpo",
        {
            "buffer.retire": False,
            "experience.start": "at_once",
            "join.source": "expert",
            "join.visit": "fresh",
            "objective.clip_before_start": "none",
        },
    ),
    "rlep": (
        "grpo",
        {
            "buffer.count_replayed": False,
            "buffer.retire": False,
            "buffer.per_question": 8,
            "experience.replay": "trajectory",
            "experience.order": "random",
            "experience.start": "at_once",
            "join.source": "pool",
            "join.pool": "on_policy",
            "join.visit": "fresh",
            "join.count": 2,
            "join.place": "beside",
            "objective.denominator": "current",
            "objective.shaping": "none",
            "objective.clip_before_start": "all",
            "objective.clip_after_start": "all",
            "objective.clip_high": 0.28,
            "objective.normaliser": "token",
        },
    ),
    "arpo": (
        "grpo",
        {
            "buffer.count_replayed": False,
            "buffer.retire": False,
            "experience.replay": "trajectory",
            "experience.order": "random",
            "experience.start": "at_once",
            "join.visit": "fresh",
            "join.when": "all_failed",
            "objective.shaping": "none",
            "objective.clip_before_start": "all",
            "objective.clip_after_start": "all",
        },
    ),
}
SAME = {("masked_full", "on_policy")}  # Masked GRPO's name for the baseline
NEEDED = ("training.start_from", "join.pool")
OPTIONAL_CLAIM = "C22"  # continuous rewards: no arm of ours has them


def flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted key."""
    leaves: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            leaves |= flat(inner, f"{prefix}{key}.")
        else:
            leaves[prefix + key] = inner
    return leaves


def resolved(tmp_path: Path, settings: dict[str, Any]) -> dict[str | None, dict[str, Any]]:
    """Every arm in one study with these settings, by dotted key; None: those settings alone.

    Where a run needs another run, the other's arm stands for it.
    """
    (tmp_path / "studies").mkdir()
    (tmp_path / "arms").symlink_to(CONFIG / "arms")
    study = {"title": "all arms", "arms": ARMS, "seeds": [0], "settings": settings}
    (tmp_path / "studies" / "all.yaml").write_text(yaml.safe_dump(study))
    runs = load_study("all", tmp_path).runs
    plain = RunSettings.model_validate({**settings, "study": "all", "arm": "", "seed": 0})
    arms: dict[str | None, dict[str, Any]] = {None: flat(plain.model_dump())}
    for run in runs.values():
        arms[run.arm] = flat(run.model_dump())
        for key in NEEDED:
            needed = arms[run.arm][key]
            arms[run.arm][key] = None if needed is None else runs[needed].arm
    return {
        arm: {key: value for key, value in values.items() if key != "arm"}
        for arm, values in arms.items()
    }


def differences(arms: dict[str | None, dict[str, Any]], arm: str) -> dict[str, Any]:
    """What an arm changes of the one that it is compared with."""
    other = arms[CHANGES[arm][0]]
    return {key: value for key, value in arms[arm].items() if value != other[key]}


def written(arm: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((CONFIG / "arms" / f"{arm}.yaml").read_text())
    return content


FULL = yaml.safe_load((CONFIG / "studies" / "tiny-full.yaml").read_text())["settings"]
# Without keep_best no arm can start from another; the default bonus is the released code's, too.
PLAIN = {"training": {"keep_best": True}, "objective": {"entropy_bonus": 0.0}}


# Over a study's settings too: an arm whose change the study makes already would be no ablation.
@pytest.mark.parametrize("settings", [PLAIN, FULL], ids=["defaults", "tiny-full"])
def test_each_arm_changes_exactly_what_its_ablation_is(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    arms = resolved(tmp_path, settings)
    assert set(CHANGES) == set(ARMS)
    for arm, (other, expected) in CHANGES.items():
        assert differences(arms, arm) == expected, f"{arm} against {other}"


@pytest.mark.parametrize("settings", [PLAIN, FULL], ids=["defaults", "tiny-full"])
def test_no_two_arms_are_the_same(tmp_path: Path, settings: dict[str, Any]) -> None:
    by_settings: dict[str, list[str]] = {}
    for arm, values in resolved(tmp_path, settings).items():
        if arm is not None:
            by_settings.setdefault(str(values), []).append(arm)
    same = {tuple(sorted(arms)) for arms in by_settings.values() if len(arms) > 1}
    assert same == SAME


def test_an_arm_differs_from_the_one_it_extends(tmp_path: Path) -> None:
    arms = resolved(tmp_path, PLAIN)
    extending = {arm: parent for arm in ARMS if (parent := written(arm).get("extends"))}
    assert extending
    for arm, parent in extending.items():
        assert "extends" not in written(parent)
        assert arms[arm] != arms[parent] or (arm, parent) in SAME


def test_the_readme_has_every_arm_once_with_its_claim_and_figure() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (.*) \| (.*) \| (.*) \|$",
        (CONFIG / "arms" / "README.md").read_text(),
        flags=re.M,
    )
    assert sorted(arm for arm, *_ in rows) == ARMS
    for arm, title, claim, paper in rows:
        file = written(arm)
        assert (title, claim, paper) == (file["title"], file["claim"], file["paper"]), arm


def test_every_claim_has_an_arm() -> None:
    claims = {claim for arm in ARMS for claim in written(arm)["claim"].split(", ")}
    assert claims == {f"C{number}" for number in range(1, 24)} - {OPTIONAL_CLAIM}


def test_a_figure_of_the_paper_names_model_and_table() -> None:
    for arm in ARMS:
        paper = written(arm)["paper"]
        quoted = re.search(
            r"\d\d?\.\d on six maths benchmarks.*\(.*(Qwen|Llama|LUFFY).*Table \d\)", paper
        )
        assert paper.startswith("not run") or quoted, f"{arm}: {paper!r}"


def test_figures_of_the_paper_are_those_of_the_facts(shared: Path) -> None:
    facts = (shared / "reference" / "exgrpo-facts.md").read_text()
    tables = facts[facts.index("## 4. All numbers") : facts.index("## 5.")]
    known = set(re.findall(r"(?<![\d.])\d+\.\d(?![\d.]\d)", tables))
    for arm in ARMS:
        quoted = re.findall(r"(?<![\w.])\d+\.\d(?= on| \(|, \d|, Table)", written(arm)["paper"])
        assert set(quoted) <= known, arm
