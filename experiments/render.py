"""Renders findings from their data: the numbers and tables of their pages, and their figures.

    python -m experiments.render [F-052 ...] [--check]

A finding is a folder of experiments/: README.md, slots.yaml, which says how numbers and tables follow from results.csv,
and figure.svg. Without ids, everything is rendered: all findings, the index (experiments/README.md), and the numbers of
findings in README.md, docs/ and the cards of the zoo. With --check, nothing is written, and files that would change are
named. Exit status 2 if a slot cannot be filled or a file would change.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.rendering.figures import drawn
from experiments.rendering.index import index
from experiments.rendering.pages import SLOT, Finding, filled, folders, of_any
from lab.errors import ConfigError, RunError, exit_cleanly
from lab.site.findings import findings

ROOT = Path(__file__).parents[1]


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    ids, check = [part for part in arguments if part != "--check"], "--check" in arguments
    changed = []
    for file, text in rendered(ROOT, ids):
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        changed.append(file)
        if not check:  # at once, because later pages quote earlier ones
            file.write_text(text, encoding="utf-8")
            print(file)
    if check and changed:
        run = "python -m experiments.render"
        raise RunError("\n".join(f"{file}: is not what its data give; run: {run}" for file in changed))


def rendered(root: Path, ids: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Each file of these findings, or of all and of the pages that cite them, with the text that it should have."""
    known = folders(root / "experiments")
    if unknown := [one for one in ids if one not in known]:
        raise ConfigError(f"{unknown[0]}: should be one of {', '.join(sorted(known))}")
    for one in ids or known:
        yield from of_finding(known[one])
    if not ids:
        yield root / "experiments" / "README.md", index(findings(root / "experiments"))
        shown = of_any(root / "experiments")
        yield from ((page, filled(page, shown)) for page in citing(root))


def of_finding(folder: Path) -> Iterator[tuple[Path, str]]:
    """The page and the figure of a finding, with the text that they should have."""
    finding, page = Finding(folder), folder / "README.md"
    yield page, filled(page, finding.shown)
    if finding.slots.figure:
        yield folder / "figure.svg", drawn(finding.slots.figure, finding.expressions)


def citing(root: Path) -> list[Path]:
    """The pages outside experiments/ that show numbers of findings."""
    pages = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "checkpoints" / "zoo").rglob("*.md")]
    return [page for page in sorted(pages) if SLOT.search(page.read_text(encoding="utf-8"))]


if __name__ == "__main__":
    main(sys.argv[1:])
