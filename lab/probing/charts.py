"""A measured array as a table and as a plotly figure."""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.drawing.tables import NOT_MEASURED, Entry, Shown, Table
from lab.numbers.statistics import Estimate

if TYPE_CHECKING:
    from lab.probing.measured import Measured

_GROWING = ((0, "#ffffff"), (1, "#0a6ebd"))
_DIVERGING = ((0, "#c0392b"), (0.5, "#ffffff"), (1, "#0a6ebd"))


def table(measured: "Measured") -> Table:
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


def figure(measured: "Measured") -> dict[str, Any]:
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


def _with_an_axis(measured: "Measured") -> "Measured":
    """A single figure as the only one of an axis without a name."""
    if measured.axes:
        return measured
    arrays = {name: getattr(measured, name).reshape(1) for name in ("value", "low", "high", "n")}
    return measured._replace(axes={"": [""]}, **arrays)


def _points(value: Any, low: Any, high: Any) -> dict[str, Any]:
    """Points of a line with error bars; where there is no value there is no bar."""
    above = [None if v is None or h is None else h - v for v, h in zip(value, high, strict=True)]
    below = [None if v is None or lo is None else v - lo for v, lo in zip(value, low, strict=True)]
    return {"y": value, "error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below}}


def _finite(array: np.ndarray) -> list[Any]:
    return np.where(np.isfinite(array), array.astype(object), np.array(None)).tolist()


def _cell(value: float, low: float, high: float) -> Entry:
    if np.isnan(value):
        return NOT_MEASURED
    return Shown(Estimate(value, low, high, 0), "{:.2f} ({:.2f}-{:.2f})", 1)
