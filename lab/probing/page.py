"""What the instruments of lab/probing measured, on one page that opens offline: what was found in sentences, the
circuit as a drawing, then a section for each instrument, whose first figure is open and whose others are folded.

plotly draws the figures and CircuitsVis the attention patterns; the page holds the scripts of both, so it needs no
network, and text from a model's vocabulary is data to it, never markup.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from lab.drawing.tables import Table
from lab.probing.charts import figure, groups, table
from lab.probing.circuit import circuit
from lab.probing.diagram import svg
from lab.probing.measured import Measured

_ROWS = 200
"""The largest number of rows in a table on the page; the whole array is in the run directory."""


class Attention(NamedTuple):
    """Where some heads look in one text."""

    title: str
    tokens: list[str]
    heads: list[str]
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
    unable: bool = False
    """Whether the verdicts say that the subject cannot do what is probed."""


def page(title: str, facts: Sequence[str], sections: Sequence[Section], attention: Sequence[Attention]) -> str:
    """One file of HTML with everything that it needs in it."""
    import circuitsvis
    from jinja2 import Environment
    from plotly.offline import get_plotlyjs

    patterns = [
        {
            "attention": np.round(item.pattern_HTT, 3).tolist(),
            "tokens": item.tokens,
            "attentionHeadNames": item.heads,
            "maskUpperTri": True,
        }
        for item in attention
    ]
    drawn = [groups(section.measured) for section in sections]
    number = itertools.count()
    template = Environment(autoescape=True).from_string(files("lab.probing").joinpath("page.html").read_text("utf-8"))
    drawing = files(circuitsvis).joinpath("dist/cdn/iife.js").read_text(encoding="utf-8") if attention else ""
    return template.render(
        title=title,
        facts=facts,
        style=files("lab.drawing").joinpath("page.css").read_text(encoding="utf-8"),
        diagram=svg(circuit({section.name: section.measured for section in sections})),
        sections=[_shown(section, parts, number) for section, parts in zip(sections, drawn, strict=True)],
        attention=[item.title for item in attention],
        figures=_script([figure(*together) for parts in drawn for together in parts]),
        patterns=_script(patterns),
        plotly=get_plotlyjs().replace("</script", "<\\/script"),
        circuitsvis=drawing.replace("</script", "<\\/script"),
    )


def _shown(section: Section, parts: Sequence[Sequence[Measured]], number: Iterator[int]) -> dict[str, Any]:
    """`number` counts the figures of the page."""
    return {
        "id": section.name.replace("_", "-"),
        "title": section.name.replace("_", " ").capitalize(),
        "look_for": section.look_for,
        "verdicts": section.verdicts,
        "failure": section.failure,
        "unable": section.unable,
        "parts": [
            {
                "number": next(number),
                "title": "; ".join(one.name for one in together),
                "beside": len(together) > 1 and len(together[0].axes) > 1,
                "tables": [_part(table(one)) for one in together],
            }
            for together in parts
        ],
    }


def _part(shown: Table) -> dict[str, Any]:
    rows = [tuple(map(str, row)) for row in shown.rows[:_ROWS]]
    return {"title": shown.title, "columns": shown.columns, "rows": rows, "left_out": len(shown.rows) - len(rows)}


def _script(value: Any) -> str:
    """JSON that cannot end the script that it stands in."""
    return json.dumps(value).replace("<", "\\u003c")
