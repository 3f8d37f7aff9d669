"""What the instruments of lab/probing measured: a table and a figure each, and one page that opens offline.

plotly draws the figures and CircuitsVis the attention patterns; the page holds the scripts of both, so it needs no
network, and text from a model's vocabulary is data to it, never markup.
"""

import itertools
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from lab.drawing.tables import NOT_MEASURED, Cell, Shown, Table
from lab.numbers.statistics import Estimate
from lab.probing.measured import Measured

_ROWS = 200
"""Of a table on the page at most; the whole array is in the run directory."""


_GROWING = ((0, "#ffffff"), (1, "#0a6ebd"))
_DIVERGING = ((0, "#c0392b"), (0.5, "#ffffff"), (1, "#0a6ebd"))


class Attention(NamedTuple):
    """Where the heads of a layer look in one text."""

    title: str
    tokens: list[str]
    pattern_HTT: np.ndarray


def table(measured: Measured) -> Table:
    """A row for each combination of all axes but the last, whose labels are the columns."""
    measured = _with_an_axis(measured)
    *named, last = measured.axes
    columns = (*named, *(f"{last} {label}".strip() for label in measured.axes[last]))
    arrays = [array.reshape(-1, len(columns) - len(named)) for array in (measured.value, measured.low, measured.high)]
    rows = [
        (*map(str, labels), *(_cell(*estimate) for estimate in zip(*estimates, strict=True)))
        for labels, *estimates in zip(itertools.product(*(measured.axes[name] for name in named)), *arrays, strict=True)
    ]
    smallest, largest = int(measured.n.min()), int(measured.n.max())
    n = f"n = {smallest}" if smallest == largest else f"n = {smallest} to {largest}"
    return Table(f"{measured.name} (95 %, {n})", columns, rows, len(named))


def figure(measured: Measured) -> dict[str, Any]:
    """A plotly figure: the last two axes as a heat map, or the only one as points with intervals.

    Every combination of the axes before is a choice of a menu.
    """
    measured = _with_an_axis(measured)
    names = list(measured.axes)
    shown = names[-2:] if len(names) > 1 else names
    chosen = names[: len(names) - len(shown)]
    choices = list(itertools.product(*(measured.axes[name] for name in chosen)))
    values, lows, highs = (
        _finite(array.reshape(len(choices), *array.shape[len(chosen) :]))
        for array in (measured.value, measured.low, measured.high)
    )
    labels = [", ".join(f"{name} {label}" for name, label in zip(chosen, choice, strict=True)) for choice in choices]
    axis = {"type": "category", "automargin": True}
    layout: dict[str, Any] = {
        "margin": {"t": 60, "r": 20},
        "xaxis": {**axis, "title": {"text": shown[-1]}},
    }
    if len(shown) == 2:
        bound = float(np.nanmax(np.abs(measured.value))) if not np.isnan(measured.value).all() else 1.0
        diverging = bool(np.nanmin(measured.value) < 0) if not np.isnan(measured.value).all() else False
        down, across = ([str(label) for label in measured.axes[name]] for name in shown)
        trace: dict[str, Any] = {"type": "heatmap", "x": across, "y": down, "z": values[0]}
        trace |= {
            "colorscale": _DIVERGING if diverging else _GROWING,
            "zmin": -bound if diverging else 0,
            "zmax": bound,
        }
        trace |= {"hovertemplate": f"{shown[0]} %{{y}}, {shown[1]} %{{x}}: %{{z:.3f}}<extra></extra>"}
        layout["yaxis"] = {**axis, "title": {"text": shown[0]}, "autorange": "reversed"}
        updates = [{"z": [value]} for value in values]
    else:
        across = [str(label) for label in measured.axes[shown[0]]]
        trace = {"type": "scatter", "mode": "markers+lines", "x": across, **_points(values[0], lows[0], highs[0])}
        updates = [
            {key: [value] for key, value in _points(*found).items()} for found in zip(values, lows, highs, strict=True)
        ]
    if len(choices) > 1:
        buttons = [
            {"label": label, "method": "restyle", "args": [update]}
            for label, update in zip(labels, updates, strict=True)
        ]
        layout["updatemenus"] = [{"buttons": buttons, "x": 0, "xanchor": "left", "y": 1.15, "yanchor": "top"}]
    return {"data": [trace], "layout": layout}


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


def _with_an_axis(measured: Measured) -> Measured:
    """A single figure as the only one of an axis without a name."""
    if measured.axes:
        return measured
    arrays = (array.reshape(1) for array in (measured.value, measured.low, measured.high, measured.n))
    return Measured(measured.name, {"": [""]}, *arrays)


def _points(value: Any, low: Any, high: Any) -> dict[str, Any]:
    """Of a line with error bars; where there is no value there is no bar."""
    above = [None if v is None or h is None else h - v for v, h in zip(value, high, strict=True)]
    below = [None if v is None or lo is None else v - lo for v, lo in zip(value, low, strict=True)]
    return {"y": value, "error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below}}


def _finite(array: np.ndarray) -> list[Any]:
    return np.where(np.isfinite(array), array.astype(object), np.array(None)).tolist()


def _cell(value: float, low: float, high: float) -> Cell:
    if np.isnan(value):
        return NOT_MEASURED
    return Shown(Estimate(value, low, high, 0), "{:.2f} ({:.2f}-{:.2f})", 1)


def _script(value: Any) -> str:
    """JSON that cannot end the script that it stands in."""
    return json.dumps(value).replace("<", "\\u003c")
