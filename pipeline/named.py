"""Named queries at the command line: what there is, explained, and their parameters read."""

import textwrap

from analysis.errors import UserError
from analysis.named import NamedQuery, Parameter
from analysis.queries import find_query, named_queries

WIDTH = 80


def explain(name: str | None = None) -> str:
    """Every named query with its purpose; for one name, all that its header says.

    Raises UserError on an unknown name.
    """
    if name is not None:
        return _explained(find_query(name))
    queries = named_queries().values()
    about = [line for query in queries for line in (query.name, *_wrapped(query.purpose))]
    usage = "exgrpo sql --list --name NAME explains one, exgrpo sql --name NAME runs it."
    return "\n".join([*about, "", usage])


def read_parameters(study: str | None, runs: list[str], given: list[str]) -> dict[str, object]:
    """The parameters of `--study`, `--run` and `--param key=value`.

    Raises UserError on a text that is no `key=value`, and on a key that is given twice.
    """
    parameters: dict[str, object] = {}
    if study is not None:
        parameters["study"] = study
    if runs:
        parameters["run"] = runs
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--param {text!r}: expected key=value, for example window=10.")
        if key in parameters:
            raise UserError(f"--param {text!r}: the parameter {key!r} is given twice.")
        parameters[key] = value
    return parameters


def check_request(
    query: str | None, name: str | None, parameters: dict[str, object], listing: bool
) -> None:
    """Raise UserError when a typed query and a named one are asked for in one command."""
    if query is not None and (name is not None or listing):
        raise UserError(f"a query ({query!r}) and --name or --list: ask one of them at a time.")
    if parameters and (name is None or listing):
        raise UserError("--study, --run and --param are for a query that --name runs.")


def _explained(query: NamedQuery) -> str:
    lines = [query.name, *_wrapped(query.purpose), "", "One row is", *_wrapped(query.grain)]
    lines += ["", "Parameters"]
    for parameter in query.parameters.values():
        lines += _entry(f"{parameter.name} {_kind(parameter)}", parameter.meaning)
    lines += ["", "Columns"]
    for column, meaning in query.columns.items():
        lines += _entry(column, meaning)
    return "\n".join(lines)


def _kind(parameter: Parameter) -> str:
    kind = parameter.type + ("" if parameter.least is None else f" >= {parameter.least}")
    return f"{kind}, required" if parameter.required else f"{kind} = {parameter.shown_default}"


def _entry(head: str, meaning: str) -> list[str]:
    return [f"  {head}", *_wrapped(meaning, "      ")]


def _wrapped(text: str, indent: str = "    ") -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)
