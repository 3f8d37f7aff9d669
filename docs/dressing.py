"""What the site adds to pages: the facts of a finding, anchors for the terms of the glossary, figures that open alone.

A hook of MkDocs (mkdocs.yml); in the repository the pages do without it.
"""

import posixpath
import re
import struct
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

_TERM = re.compile(r"^\*\*([^*\n]+)\*\* ·", re.MULTILINE)
_FIGURE = re.compile(r"^(!\[[^\]\n]*\]\(([^)\n]+)\))$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if page.file.src_uri == "concepts.md":
        markdown = _TERM.sub(term, markdown)
    if "claim" in page.meta:
        title, _, rest = markdown.lstrip().partition("\n")
        back = posixpath.relpath("experiments/README.md", posixpath.dirname(page.file.src_uri))
        markdown = f"{title}\n\n{facts(page.meta, back)}\n{rest}"
    return _FIGURE.sub(lambda found: figure(found, page.file.src_uri, files), markdown)


def figure(found: re.Match[str], page: str, files: Files) -> str:
    """A figure that opens alone. On a phone, one that is more than twice as wide as high scrolls sideways; any other
    fits the screen."""
    file = files.get_file_from_path(posixpath.normpath(posixpath.join(posixpath.dirname(page), found[2])))
    kind = ".figure .panels" if file and wide(Path(file.abs_src_path or "")) else ".figure"
    return f"[{found[1]}]({found[2]}){{{kind} style=display:block title='Open the figure alone'}}"


def wide(file: Path) -> bool:
    """Whether a PNG is more than 2.2 times as wide as high, by the size in its header."""
    header = file.read_bytes()[16:24] if file.suffix == ".png" and file.is_file() else b""
    width, height = struct.unpack(">II", header) if len(header) == 8 else (1, 1)
    return width > 2.2 * height


def term(found: re.Match[str]) -> str:
    """A term with an anchor for each of its names: "ranges S, M, L, XL" is #ranges-s and so on."""
    names = [re.sub(r"\W+", "-", name.strip().lower()) for name in found[1].split(",")]
    anchors = "".join(f'<span id="{name}"></span>' for name in names[1:])
    return f"{anchors}**{found[1]}**{{#{names[0]}}} ·"


def facts(front: dict[str, Any], index: str) -> str:
    """How sure a finding is: its status, models, seeds, n, device and date, with a link to all findings."""
    models = "; ".join(map(str, front["models"]))
    seeds = f"{front['seeds']} seed{'' if front['seeds'] == 1 else 's'}" if front["seeds"] else "no training"
    said = [
        f"**{front['headline']}**",
        f"**{front['status']}** · {seeds} · n: {front['n']} · {front['device']} · {front['date']}",
        f"model: {models} · [all findings]({index})",
    ]
    return f'<div class="facts" markdown>\n{"<br>".join(said)}\n</div>\n'
