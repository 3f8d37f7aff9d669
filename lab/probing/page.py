"""What the instruments of lab/probing measured: a table and a figure each, and one page that opens offline.

plotly draws the figures and CircuitsVis the attention patterns; the page holds the scripts of both, so it needs no
network, and text from a model's vocabulary is data to it, never markup.
"""

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from lab.probing.charts import figure, table
from lab.probing.measured import Measured

_ROWS = 200
"""Of a table on the page at most; the whole array is in the run directory."""


class Attention(NamedTuple):
    """Where the heads of a layer look in one text."""

    title: str
    tokens: list[str]
    pattern_HTT: np.ndarray


def page(title: str, facts: Sequence[str], measured: Sequence[Measured], attention: Sequence[Attention]) -> str:
    """One file of HTML with everything that it needs in it."""
    import circuitsvis
    from jinja2 import Environment
    from plotly.offline import get_plotlyjs

    parts = []
    for found in measured:
        shown = table(found)
        rows = [tuple(map(str, row)) for row in shown.rows[:_ROWS]]
        parts.append(
            {"title": shown.title, "columns": shown.columns, "rows": rows, "left_out": len(shown.rows) - len(rows)}
        )
    patterns = [
        {"attention": np.round(item.pattern_HTT, 3).tolist(), "tokens": item.tokens, "maskUpperTri": True}
        for item in attention
    ]
    template = Environment(autoescape=True).from_string(files("lab.probing").joinpath("page.html").read_text())
    drawing = files(circuitsvis).joinpath("dist/cdn/iife.js").read_text(encoding="utf-8") if attention else ""
    return template.render(
        title=title,
        facts=facts,
        parts=parts,
        attention=[item.title for item in attention],
        figures=_script([figure(found) for found in measured]),
        patterns=_script(patterns),
        plotly=get_plotlyjs().replace("</script", "<\\/script"),
        circuitsvis=drawing.replace("</script", "<\\/script"),
    )


def _script(value: Any) -> str:
    """JSON that cannot end the script that it stands in."""
    return json.dumps(value).replace("<", "\\u003c")
