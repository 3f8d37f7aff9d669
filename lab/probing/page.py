"""What the instruments of lab/probing measured: a table and a figure each, and one page that opens offline.

plotly draws the figures and CircuitsVis the attention patterns; the page holds the scripts of both, so it needs no
network, and text from a model's vocabulary is data to it, never markup.
"""

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from lab.drawing.tables import Table
from lab.probing.charts import figure, table
from lab.probing.measured import Measured

_ROWS = 200
"""The largest number of rows in a table on the page; the whole array is in the run directory."""


class Attention(NamedTuple):
    """Where the heads of a layer look in one text."""

    title: str
    tokens: list[str]
    pattern_HTT: np.ndarray


class Section(NamedTuple):
    """What one instrument found."""

    name: str
    look_for: str
    """What to see in its figures."""
    measured: Sequence[Measured]
    verdicts: Sequence[str]
    failure: str = ""
    """Why it found nothing."""


def page(title: str, facts: Sequence[str], sections: Sequence[Section], attention: Sequence[Attention]) -> str:
    """One file of HTML with everything that it needs in it: verdicts first, then a section an instrument."""
    import circuitsvis
    from jinja2 import Environment
    from plotly.offline import get_plotlyjs

    patterns = [
        {"attention": np.round(item.pattern_HTT, 3).tolist(), "tokens": item.tokens, "maskUpperTri": True}
        for item in attention
    ]
    template = Environment(autoescape=True).from_string(files("lab.probing").joinpath("page.html").read_text())
    drawing = files(circuitsvis).joinpath("dist/cdn/iife.js").read_text(encoding="utf-8") if attention else ""
    return template.render(
        title=title,
        facts=facts,
        sections=[_shown(section) for section in sections],
        attention=[item.title for item in attention],
        figures=_script([figure(found) for section in sections for found in section.measured]),
        patterns=_script(patterns),
        plotly=get_plotlyjs().replace("</script", "<\\/script"),
        circuitsvis=drawing.replace("</script", "<\\/script"),
    )


def _shown(section: Section) -> dict[str, Any]:
    return {
        "id": section.name.replace("_", "-"),
        "title": section.name.replace("_", " ").capitalize(),
        "look_for": section.look_for,
        "verdicts": section.verdicts,
        "failure": section.failure,
        "parts": [_part(table(found)) for found in section.measured],
    }


def _part(shown: Table) -> dict[str, Any]:
    rows = [tuple(map(str, row)) for row in shown.rows[:_ROWS]]
    return {"title": shown.title, "columns": shown.columns, "rows": rows, "left_out": len(shown.rows) - len(rows)}


def _script(value: Any) -> str:
    """JSON that cannot end the script that it stands in."""
    return json.dumps(value).replace("<", "\\u003c")
