"""The ledger: what is claimed, and how it is tested here.

Claims are in `claims.yaml`, what is said of the paper in `statements.yaml`, and what they have in
common in `claim_defaults.yaml`.
"""

from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from analysis.domains import NAMES, Domain
from analysis.errors import UserError
from analysis.paper import ask

LEDGER = Path(__file__).parents[1] / "claims.yaml"
STATEMENTS = Path(__file__).parents[1] / "statements.yaml"
DEFAULTS = Path(__file__).parents[1] / "claim_defaults.yaml"

Unit = Literal[
    "points", "points per 100 steps", "AUROC", "nat/token", "share", "log ratio", "counted"
]
Test = Literal[
    # statistical tests: one family, `analysis.claims.tests.TESTS`
    "accuracy_difference",
    "accuracy_by_extraction",
    "accuracy_at_equal_cost",
    "masked_difference",
    "weak_base_difference",
    "retirement_difference",
    "continued_difference",
    "delayed_start_difference",
    "entropy_auroc",
    "entropy_auroc_at_equal_length",
    "entropy_auroc_over_nll",
    "difficulty_auroc",
    "shortcut_auroc",
    "snowball_detected",
    "late_entropy_difference",
    "collected_share",
    "retired_over_buffered",
    "step_time_ratio",
    "not_testable",
    # decided exactly, outside the family: `analysis.claims.counted.COUNTS`
    "costs_fall",
    "ablation_named",
    "gains_within",
    "bucket_count",
    "stores_wrong_answers",
    "weight_formula",
    "one_domain_tested",
]


Form = TypeVar("Form", bound=BaseModel)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PaperRow(_Part):
    """One row of a question about the paper's tables: `where` names it by its columns."""

    query: str
    where: dict[str, str]

    def find(self) -> dict[str, Any]:
        """The row. Raises ValueError when no row, or more than one, is named so."""
        answer = ask(self.query)
        if unknown := self.where.keys() - {*answer.columns}:
            raise ValueError(f"{self.query!r} has no column {unknown.pop()!r}")
        rows = answer.filter(**self.where).to_dicts()
        if len(rows) != 1:
            raise ValueError(f"{self.query!r} has {len(rows)} rows where {self.where}")
        return rows[0]


class Claim(_Part):
    """One line of the ledger, in our words. The claimed direction is always upwards.

    paper: what the paper has, its figures filled in from `paper_row`. scale: what the paper's
    figure is about. asks: whether `query` is one about a study's log or about the paper's tables.
    beside: further queries whose answers the test or its notes use. domain: it is about the tests
    in, or out of, distribution; benchmark: about this one. given: what else it needs.
    effect: the effect whose power is stated, above the threshold. deviations: how our test
    differs from what is claimed.
    """

    id: str
    short: str
    statement: str
    source: str
    paper: str
    paper_row: PaperRow | None = None
    scale: str
    estimand: str
    asks: Literal["log", "paper"] = "log"
    query: str
    beside: list[str] = Field(default_factory=list)
    test: Test
    arms: list[str] = Field(default_factory=list)
    domain: Domain | None = None
    benchmark: str | None = None
    given: dict[str, Any] = Field(default_factory=dict)
    threshold: float
    unit: Unit
    effect: float | None = None
    deviations: str


class Ledger(_Part):
    alpha: float = Field(gt=0, lt=1)
    claims: list[Claim] = Field(min_length=1)


class _Defaults(_Part):
    """What the claims of a test take where they leave it out."""

    defaults: dict[Test, dict[str, Any]]


class _File(_Part):
    """A file of claims as written. A claim with parts stands for each of them, with what is common
    written once."""

    alpha: float | None = Field(None, gt=0, lt=1)
    claims: list[dict[str, Any]] = Field(min_length=1)


def load_ledger(
    path: Path = LEDGER, statements: Path = STATEMENTS, defaults: Path = DEFAULTS
) -> Ledger:
    """Read and check all files. Raises UserError naming file, claim, key, value and remedy."""
    common = _read(defaults, _Defaults).defaults
    files = {each: _read(each, _File) for each in (path, statements)}
    alpha = files[path].alpha
    if alpha is None:
        raise UserError(f"{path}: key `alpha`: missing. Write the error rate of the family.")
    claims = [
        _claim(each, entry, common)
        for each, file in files.items()
        for entry in _entries(file.claims)
    ]
    ids = [claim.id for claim in claims]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise UserError(f"{path}: claim {twice[0]!r} is listed twice. Give each its own id.")
    return Ledger(alpha=alpha, claims=claims)


def _read(path: Path, form: type[Form]) -> Form:
    try:
        return form.model_validate(yaml.safe_load(path.read_text()))
    except yaml.YAMLError as error:
        raise UserError(f"{path}: no valid YAML: {error}. Mend the line named.") from error
    except ValidationError as error:
        raise UserError(_explain(str(path), error)) from error


def _entries(claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every claim and every part of a claim; a part's id is appended to that of its claim."""
    return [
        {key: value for key, value in claim.items() if key != "parts"}
        | part
        | {"id": f"{claim.get('id', '')}{part.get('id', '')}"}
        for claim in claims
        for part in claim.get("parts", [{}])
    ]


def _claim(path: Path, entry: dict[str, Any], defaults: dict[Test, dict[str, Any]]) -> Claim:
    where = f"{path}: claim {entry['id']!r}"
    filled = {**next((defaults[t] for t in defaults if t == entry.get("test")), {}), **entry}
    try:
        if row := PaperRow(**filled["paper_row"]).find() if "paper_row" in filled else None:
            filled["paper"] = filled["paper"].format(**row)
            if isinstance(column := filled.get("effect"), str):
                scale = 100 if filled["unit"] == "points" else 1
                filled["effect"] = round(row[column] / scale, 6)  # printed to a tenth of a point
        distribution = NAMES.get(filled.get("domain", ""), "")
        filled["estimand"] = filled["estimand"].format(**filled, distribution=distribution)
        return Claim.model_validate(filled)
    except ValidationError as error:
        raise UserError(_explain(where, error)) from error
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        raise UserError(
            f"{where}: `paper_row`, `paper`, `effect` or `estimand`: {error}. Change the ledger."
        ) from error


def _explain(where: str, error: ValidationError) -> str:
    return "\n".join(
        f"{where}: key `{'.'.join(map(str, item['loc'])) or 'the file'}`: {item['msg']}; "
        f"found {item['input']!r}. Change the ledger."
        for item in error.errors()
    )
