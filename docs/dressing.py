"""What the site adds to pages: the facts of a finding, anchors for the terms of the glossary, figures that open alone.

A hook of MkDocs (mkdocs.yml); in the repository the pages do without it.
"""

import posixpath
import re
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
    return _FIGURE.sub(r"[\1](\2){.figure style=display:block title='Open the figure alone'}", markdown)


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
