"""What studies say, as one page of Markdown and small tables: to be kept beside the code."""

from dataclasses import dataclass
from typing import Any, get_args

import polars as pl

from analysis import closing
from analysis.claims import (
    Claim,
    Verdict,
    VerdictWord,
    show_interval,
    show_paper,
    show_power,
)
from analysis.markdown import markdown_table
from analysis.stage_outputs import Observed

# Contradictions first: they are as loud as what agrees.
ORDER: tuple[VerdictWord, ...] = (
    "contradicted",
    "supported",
    "inconclusive (underpowered)",
    "not testable here",
)
assert set(ORDER) == set(get_args(VerdictWord))
LOUD = ORDER[:2]
HEADING = "# What study "  # of every such page
CLAIM_HEADER = ("claim", "", "paper", "here, with its interval", "level", "power", "sample")
CLAIM_NOTE = (
    "Paper: its own gap, of its own models and benchmarks. Here: the estimate with the interval "
    "that Holm's rule grants over all claims tested in the study. Power: how often a study like "
    "this one would find the effect that the ledger names, the paper's gap where it prints one. "
    "Each study is a family of its own: over several, the chance of some false verdict adds up."
)


@dataclass(frozen=True)
class StudyResult:
    """A study's last analysis. facts: label and text."""

    name: str
    world: str
    facts: list[tuple[str, str]]
    comparison: dict[str, Any]
    verdicts: list[tuple[Claim, Verdict]]
    observed: list[Observed]


def results_page(studies: list[StudyResult], page: str) -> str:
    """The page, of the file named `page`. studies: the first one first; all have one ledger."""
    first = studies[0].name
    words = ", ".join(f"`{word}`" for word in ORDER)
    lines = [
        f"{HEADING}`{first}` says",
        "",
        "Written from the lake, with nothing typed by hand. To make it again:",
        "",
        "```",
        f"make reproduce STUDY={first}   # trains what is not trained yet; FINISHED=1: nothing",
        f"make results STUDY={first} PAGE=docs/results/{page}",
        "```",
        "",
        "A verdict on a claim C speaks about the study's own model, task and world, never about "
        f"the paper's. The words: {words}. Statements S are decided "
        "exactly, by the paper's own tables or by what a log holds. What the words mean and how "
        "intervals are made is in the README; `exgrpo claims --claim ID` has a claim's estimand.",
        "",
        "## At a glance",
        "",
        *markdown_table(
            ["claim", "", "paper", *(f"`{study.name}`" for study in studies)], _glance(studies)
        ),
        "",
    ]
    for study in studies:
        lines += _study(study)
    return "\n".join(lines).rstrip() + "\n"


def _glance(studies: list[StudyResult]) -> list[list[str]]:
    return [
        [claim.id, claim.short, show_paper(claim)]
        + [_word(study.verdicts[place][1], claim) for study in studies]
        for place, (claim, _) in enumerate(studies[0].verdicts)
    ]


def _word(verdict: Verdict, claim: Claim) -> str:
    word = verdict.verdict.partition(" (")[0]
    loud = f"**{word}**" if verdict.verdict in LOUD else word
    return f"{loud} {show_interval(verdict, claim.unit)}".strip()


def _study(study: StudyResult) -> list[str]:
    lines = [f"## `{study.name}`: {study.world}", ""]
    lines += [f"- {label}: {text}" for label, text in study.facts]
    for word in ORDER:
        found = [pair for pair in study.verdicts if pair[1].verdict == word]
        lines += ["", f"### {word[0].upper()}{word[1:]}: {len(found)}", ""]
        if word == "not testable here":
            lines += [
                f"- {claim.id}, {claim.short}: {_reason(verdict)}" for claim, verdict in found
            ]
        elif found:
            lines += markdown_table(list(CLAIM_HEADER), [_claim(*pair) for pair in found])
        if word in LOUD:
            lines += [line for pair in found for line in _beside(*pair)]
    lines += ["", CLAIM_NOTE, "", "### Arms", ""]
    measured = {entry["arm"] for entry in study.comparison["arms"]}
    rows = [row for row in closing.closing_rows(study.comparison) if row[0] in measured]
    lines += markdown_table(list(closing.HEADER), rows)
    if waiting := [f"`{arm}`" for arm in study.comparison["planned"] if arm not in measured]:
        lines += ["", f"Planned, with no run finished yet: {', '.join(waiting)}."]
    lines += ["", closing.meaning(study.comparison), "", "### What was observed", ""]
    for each in study.observed:
        lines += [f"**{each.title}**", "", *(f"- {line}" for line in each.lines), ""]
    return lines


def _claim(claim: Claim, verdict: Verdict) -> list[str]:
    # A statement that is counted, not estimated, has its numbers in words.
    here = show_interval(verdict, claim.unit) or verdict.reading
    level = "" if verdict.level is None else f"{100 * verdict.level:.2f} %"
    return [
        claim.id,
        claim.short,
        show_paper(claim),
        here,
        level,
        show_power(verdict),
        verdict.sample,
    ]


def _beside(claim: Claim, verdict: Verdict) -> list[str]:
    """What must be read with a verdict that is loud: how the test differs, and its notes."""
    if claim.unit == "counted":
        return []
    said = " ".join([*verdict.notes, f"Deviations: {claim.deviations}."])
    return ["", f"{claim.id}: {claim.statement.rstrip('.')}. {said}"]


def _reason(verdict: Verdict) -> str:
    return verdict.reading.partition(": ")[2]


def results_tables(studies: list[StudyResult]) -> dict[str, pl.DataFrame]:
    """The page's numbers, unrounded, by name of table: `claims` and `arms`."""
    claims = [
        {
            "study": study.name,
            "claim": claim.id,
            "verdict": verdict.verdict,
            "unit": claim.unit,
            "threshold": claim.threshold,
            "value": verdict.value,
            "low": verdict.low,
            "high": verdict.high,
            "level": verdict.level,
            "p": verdict.p,
            "permutation_p": verdict.permutation_p,
            "smallest_effect": verdict.smallest_effect,
            "effect": claim.effect,
            "power": verdict.power,
            "seeds": verdict.seeds,
            "questions": verdict.questions,
        }
        for study in studies
        for claim, verdict in study.verdicts
    ]
    arms = [
        {
            "study": study.name,
            "arm": entry["arm"],
            "seeds": len(entry["seeds"]),
            "benchmark": benchmark,
            "quantity": quantity,
            **{key: made[key] for key in ("value", "low", "high", "level")},
        }
        for study in studies
        for entry in study.comparison["arms"]
        for quantity in ("accuracy", "difference")
        for benchmark, made in entry[quantity].items()
        if made is not None
    ]
    return {
        "claims": pl.DataFrame(claims, infer_schema_length=None),
        "arms": pl.DataFrame(arms, infer_schema_length=None),
    }
