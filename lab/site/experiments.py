"""Reads the log of experiments (experiments/README.md) as entries: each table row, with the files that it names."""

import re
import shutil
from html import escape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.token import Token

_NAMED = re.compile(r"results/([\w-]+\.(?:png|md|py))")
_TEXT = MarkdownIt("js-default", {"html": False, "linkify": False})


class Entry(NamedTuple):
    section: str
    title: str
    cells: list[tuple[str, str]]
    """(column, HTML) for each column after the first."""
    figures: list[str]
    """File names in the site's folder experiments/."""
    tables: list[tuple[str, str]]
    """(file name, HTML) for each result table that the row names."""
    sources: list[tuple[str, str]]
    """(file name, text) for each program that the row names."""


def entries(folder: Path, site: Path) -> list[Entry]:
    """The entries of `folder`/README.md; the figures that they name are copied to `site`/experiments.

    The list is empty if there is no such log. HTML in the log is shown as text.
    """
    log = folder / "README.md"
    if not log.is_file():
        return []
    found = []
    section, columns = "", []
    tokens = _TEXT.parse(log.read_text(encoding="utf-8", errors="replace"))
    row: list[Token] = []
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            section = tokens[place + 1].content
        elif token.type == "tr_open":
            row = []
        elif token.type in ("th_open", "td_open"):
            row.append(tokens[place + 1])
        elif token.type == "tr_close":
            if tokens[place - 1].type == "th_close":
                columns = [cell.content for cell in row]
            else:
                found.append(_entry(section, columns, row, folder, site))
    return found


def _entry(section: str, columns: list[str], row: list[Token], folder: Path, site: Path) -> Entry:
    text = " ".join(cell.content for cell in row)
    named = [folder / "results" / name for name in dict.fromkeys(_NAMED.findall(text))]
    named = [path for path in named if path.is_file()]
    figures = [path for path in named if path.suffix == ".png"]
    for path in figures:
        (site / "experiments").mkdir(exist_ok=True)
        shutil.copyfile(path, site / "experiments" / path.name)
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in named if path.suffix != ".png"}
    return Entry(
        section,
        _inline(row[0]),
        [(column, _inline(cell)) for column, cell in zip(columns[1:], row[1:], strict=False)],
        [quote(path.name) for path in figures],
        [(path.name, _tables(path.name, text)) for path, text in texts.items() if path.suffix == ".md"],
        [(path.name, text) for path, text in texts.items() if path.suffix == ".py"],
    )


def _tables(name: str, text: str) -> str:
    """A result file as HTML; its tables get the headings and captions that a screen reader needs."""
    named = re.sub(r"<th(?=[ >])", '<th scope="col"', _TEXT.render(text))
    return named.replace("<table>", f'<table><caption class="hidden">{escape(name)}</caption>')


def _inline(cell: Token) -> str:
    """A cell as HTML, without its images, which are shown below, and without links to files that are not copied."""
    kept: list[Token] = []
    dropped = False
    for token in cell.children or []:
        if token.type == "link_open":
            dropped = not str(token.attrGet("href")).startswith(("http://", "https://"))
        if token.type == "image" or (dropped and token.type in ("link_open", "link_close")):
            continue
        kept.append(token)
    renderer: Any = _TEXT.renderer  # its type has only what all renderers share
    return renderer.renderInline(kept, _TEXT.options, {})
