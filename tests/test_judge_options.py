"""Options of `exgrpo judge` that do not fit: each is refused by its name, before any work."""

import math
import re
from typing import Any

import pytest
from typer.testing import CliRunner

from exgrpo.errors import UserError
from pipeline.cli import app
from pipeline.judge import LlmOptions, make_judge


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("oracle", LlmOptions(), "known are deterministic, code, llm"),
        ("llm", LlmOptions(), "--endpoint"),
        ("llm", LlmOptions("http://127.0.0.1:1/v1"), "--model"),
        ("code", LlmOptions(requests_per_minute=3), "--requests-per-minute"),
    ],
)
def test_options_that_do_not_fit(name: str, options: LlmOptions, said: str) -> None:
    with pytest.raises(UserError, match=said):
        make_judge(name, options)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("timeout", value) for value in (-1.0, math.nan, 0.0, math.inf, 1e300)),
        *(("requests_per_minute", value) for value in (0.0, -5.0, 1e-300)),
        *(("temperature", value) for value in (math.nan, -0.1)),
        *(("top_p", value) for value in (1.5, math.nan)),
        *(("model", value) for value in ("", " ", "tiny\udc80", "a\nb")),
    ],
)
def test_values_that_no_server_takes(option: str, value: Any) -> None:
    given: dict[str, Any] = {"endpoint": "http://127.0.0.1:1/v1", "model": "tiny", option: value}
    shown = f"{value!a}" if option == "model" else str(value)
    with pytest.raises(UserError, match=f"--{option.replace('_', '-')} {re.escape(shown)}"):
        make_judge("llm", LlmOptions(**given))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["some.jsonl", "--limit", "2"], "--limit"),
        (["some.jsonl", "--run", "import-some"], "--run"),
        (["some.jsonl", "--study", "imports"], "--study"),
        (["some.jsonl", "--model", "tiny"], "--model"),
        (["--show", "3"], "--show"),
    ],
)
def test_options_without_effect_are_refused(arguments: list[str], said: str) -> None:
    found = CliRunner().invoke(app, ["judge", "--judge", "code", *arguments])
    assert isinstance(found.exception, UserError)
    assert str(found.exception).startswith(said)
