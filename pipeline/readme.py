"""Put a study's result table into the README, between its two markers; nothing else changes."""

from pathlib import Path

from exgrpo.errors import UserError
from exgrpo.records import write_whole
from exgrpo.studies import Study

BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"


def update_readme(study: Study, results: Path, readme: Path = Path("README.md")) -> bool:
    """Write `results/<study>/summary.md` between the markers; whether the README changed.

    Raises UserError when the summary or the README is missing, or the README does not hold each
    marker once and in order.
    """
    summary = results / study.name / "summary.md"
    if not summary.is_file():
        raise UserError(f"{summary}: missing. Run `exgrpo summary --study {study.name}` first.")
    if not readme.is_file():
        raise UserError(f"{readme}: missing. Run this in the root of the checkout.")
    text = readme.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(END) < text.index(BEGIN):
        raise UserError(
            f"{readme}: needs the line `{BEGIN}` once and the line `{END}` once after it. "
            f"Add them where the results belong."
        )
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    changed = f"{before}{BEGIN}\n\n{summary.read_text().strip()}\n\n{END}{after}"
    if changed == text:
        return False
    write_whole(readme, changed.encode())
    return True
