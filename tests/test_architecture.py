"""The shape of the house: which folder may import which, small files, no path of one machine."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

MAY_IMPORT = {
    "exgrpo": ("exgrpo",),
    "analysis": ("analysis", "exgrpo.tables"),
    "pipeline": ("pipeline", "exgrpo", "analysis"),
    "app": ("app", "analysis", "exgrpo.tables"),
}
FOLDERS = (*MAY_IMPORT, "workflow", "config", "tests", "benchmarks")
TEXT = {".py", ".sql", ".smk", ".yaml", ".yml", ".toml", ".md", ".rst", ".txt", ".css", ".html", ""}


def our_files() -> list[Path]:
    """Every text file of the repo: those of our folders and those at the root."""
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    files = [path for path in (*inside, *ROOT.iterdir()) if path.is_file()]
    return [path for path in files if path.suffix in TEXT and "__pycache__" not in path.parts]


def imports(path: Path) -> Iterator[str]:
    """Full names of what a file imports, at the top and inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"{path}: line {node.lineno}: a relative import hides its folder"
            )
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_run_one_way(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / folder).rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] in MAY_IMPORT
        and not any(f"{name}.".startswith(f"{allowed}.") for allowed in MAY_IMPORT[folder])
    ]
    assert not wrong


def test_the_tables_need_neither_torch_nor_duckdb() -> None:
    code = (
        "import sys, exgrpo.tables.manifest; "
        "print({'torch', 'duckdb', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_no_file_is_long() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in our_files()
        if (lines := path.read_text().count("\n")) > (200 if path.name == "README.md" else 400)
    }
    assert not long


def test_no_path_of_one_machine() -> None:
    # A slash after a word or a dot is part of an address or of a relative path.
    machine = re.compile(r"(?<![\w.])/(?:work|root|home|Users|opt|mnt|tmp)/")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in our_files()
        if path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if machine.search(line)
    ]
    assert not found
