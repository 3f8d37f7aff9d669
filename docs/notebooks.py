"""Notebooks of the repository as pages of the site: their text, their code, and what it printed and drew."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def as_markdown(file: Path) -> str:
    """The notebook with the outputs that it was stored with; a link to it stands at its end."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    parts = [part for cell in cells for part in _cell(cell)]
    return "\n\n".join([*parts, f"This page is a notebook, `notebooks/{file.name}`."])


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield text
        return
    yield _fenced(text, "python")
    for output in cell["outputs"]:
        yield from _output(output)


def _output(output: dict[str, Any]) -> Iterator[str]:
    """The richest form of it that a page can show."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        yield f'<div class="drawing">{_whole(data["image/svg+xml"])}</div>'
    elif "image/png" in data:
        yield f'<img alt="What the cell drew" src="data:image/png;base64,{_whole(data["image/png"]).strip()}">'
    elif "text/markdown" in data:
        yield _whole(data["text/markdown"])
    elif text := _whole(data.get("text/plain", output.get("text", ""))).rstrip():
        yield _fenced(text, "text")


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```"


def _whole(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)
