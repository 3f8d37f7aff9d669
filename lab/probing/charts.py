"""A measured array as a table and as a plotly figure."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from lab.drawing.tables import NOT_MEASURED, Entry, Shown, Table
from lab.numbers.statistics import Estimate

_GROWING = ((0, "#ffffff"), (1, "#0a6ebd"))
_LARGER = 10
"""Arrays whose sizes differ by a larger factor do not share a scale."""
_DIVERGING = ((0, "#c0392b"), (0.5, "#ffffff"), (1, "#0a6ebd"))


class Labelled(NamedTuple):
    """Values, their intervals and their axes. Each array has one dimension for each axis; nan means not measured."""

    name: str
    axes: dict[str, list[Any]]
    """Name and labels of each dimension, such as {"layer": [0, 1], "head": [0, 1, 2, 3]}."""
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    """95 % intervals."""
    n: np.ndarray
    """Samples behind each value."""

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Value, low, high and n."""
        return self[2:]


def table(measured: Labelled) -> Table:
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


def figure(*beside: Labelled) -> dict[str, Any]:
    """A plotly figure of arrays with the same axes: a heat map of layers and heads, or else of the last two axes;
    points with intervals if there is only one axis.

    Several arrays, such as an effect and its control, are drawn beside each other on one scale. A menu chooses among
    the combinations of the other axes; at first it shows the one with the largest value. Raises ValueError for arrays
    with different axes.
    """
    axes = _with_an_axis(beside[0]).axes
    if any(one.axes != beside[0].axes for one in beside):
        raise ValueError(f"{', '.join(one.name for one in beside)} have different axes")
    shown = ["layer", "head"] if {"layer", "head"} <= axes.keys() else list(axes)[-2:]
    chosen = [name for name in axes if name not in shown]
    choices = list(itertools.product(*(axes[name] for name in chosen)))
    labels = [", ".join(f"{name} {label}" for name, label in zip(chosen, choice, strict=True)) for choice in choices]
    arrays = [_by_choice(_with_an_axis(one), [*chosen, *shown], len(chosen)) for one in beside]
    traces, layout, updates = _maps(arrays, shown) if len(shown) == 2 else _lines(arrays, shown[0])
    active = _largest(arrays[0].value)
    for number, trace in enumerate(traces):
        trace |= {key: parts[number] for key, parts in updates[active].items()}
    if len(choices) > 1:
        buttons = [
            {"label": label, "method": "restyle", "args": [update]}
            for label, update in zip(labels, updates, strict=True)
        ]
        layout["updatemenus"] = [
            {"buttons": buttons, "active": active, "x": 0, "xanchor": "left", "y": 1.3, "yanchor": "top"}
        ]
    return {"data": traces, "layout": {"margin": {"t": 90 if len(choices) > 1 else 50, "r": 20}, **layout}}


def groups(measured: Sequence[Labelled]) -> list[list[Labelled]]:
    """Groups successive arrays with the same axes, which share a figure. An array whose values are much larger than
    those of its group's first array begins a new group, because the first could not be seen on its scale."""
    found: list[list[Labelled]] = []
    for one in measured:
        before = found[-1][0] if found else None
        if before and one.axes and before.axes == one.axes and _size(one) <= _LARGER * _size(before):
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _size(measured: Labelled) -> float:
    """The largest absolute value."""
    known = measured.value[np.isfinite(measured.value)]
    return float(np.abs(known).max()) if known.size else 0.0


Updates: TypeAlias = list[dict[str, Any]]
"""What each choice of the menu sets in each trace."""


def _maps(arrays: Sequence[Labelled], shown: Sequence[str]) -> tuple[Any, Any, Updates]:
    axes, count = arrays[0].axes, len(arrays)
    known = np.concatenate([one.value[np.isfinite(one.value)] for one in arrays])
    bound = float(np.abs(known).max()) if known.size else 1.0
    diverging = bool(known.size and known.min() < 0)
    down, across = ([str(label) for label in axes[name]] for name in shown)
    gap = 0.04
    width = (1 + gap) / count
    layout: dict[str, Any] = {
        "coloraxis": {
            "colorscale": _DIVERGING if diverging else _GROWING,
            "cmin": -bound if diverging else 0,
            "cmax": bound,
        },
        "annotations": [
            {"text": one.name, "x": n * width, "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper"}
            | {"yanchor": "bottom", "showarrow": False}
            for n, one in enumerate(arrays)
            if count > 1
        ],
    }
    traces = []
    for n in range(count):
        number = str(n + 1) if n else ""
        hover = f"{shown[0]} %{{y}}, {shown[1]} %{{x}}: %{{z:.3f}}<extra></extra>"
        trace = {"type": "heatmap", "x": across, "y": down, "coloraxis": "coloraxis", "hovertemplate": hover}
        traces.append({**trace, "xaxis": f"x{number}", "yaxis": f"y{number}"})
        domain = [n * width, min(1.0, n * width + width - gap)]
        axis = {"type": "category", "automargin": True}
        layout[f"xaxis{number}"] = {**axis, "title": {"text": shown[1]}, "domain": domain, "anchor": f"y{number}"}
        layout[f"yaxis{number}"] = {**axis, "autorange": "reversed", "anchor": f"x{number}"}
        layout[f"yaxis{number}"] |= {"title": {"text": shown[0]}} if n == 0 else {"showticklabels": False}
    updates = [{"z": [_finite(one.value[choice]) for one in arrays]} for choice in range(len(arrays[0].value))]
    return traces, layout, updates


def _lines(arrays: Sequence[Labelled], shown: str) -> tuple[Any, Any, Updates]:
    across = [str(label) for label in arrays[0].axes[shown]]
    traces = [{"type": "scatter", "mode": "markers+lines", "x": across, "name": one.name} for one in arrays]
    legend = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"}
    axis = {"type": "category", "automargin": True, "title": {"text": shown}}
    layout = {"xaxis": axis, "legend": legend}
    updates = []
    for choice in range(len(arrays[0].value)):
        points = [_points(*(_finite(part[choice]) for part in (one.value, one.low, one.high))) for one in arrays]
        updates.append({key: [one[key] for one in points] for key in ("y", "error_y")})
    return traces, layout, updates


def _by_choice(measured: Labelled, ordered: Sequence[str], chosen: int) -> Labelled:
    """The arrays with their axes in this order, the first `chosen` of which become one, (choices, *shown)."""
    order = [list(measured.axes).index(name) for name in ordered]
    turned = (array.transpose(order) for array in measured.arrays)
    value, low, high, n = (array.reshape(-1, *array.shape[chosen:]) for array in turned)
    return measured._replace(value=value, low=low, high=high, n=n)


def _largest(values: np.ndarray) -> int:
    """The choice with the largest value; the first if there is none."""
    flat = np.where(np.isfinite(values), np.abs(values), -1.0).reshape(len(values), -1)
    return int(flat.max(-1).argmax())


def _with_an_axis(measured: Labelled) -> Labelled:
    """A single value becomes an array with one axis, which has no name."""
    if measured.axes:
        return measured
    value, low, high, n = (array.reshape(1) for array in measured.arrays)
    return measured._replace(axes={"": [""]}, value=value, low=low, high=high, n=n)


def _points(value: Any, low: Any, high: Any) -> dict[str, Any]:
    """The points of a line, with error bars where there is a value."""
    above = [None if v is None or h is None else h - v for v, h in zip(value, high, strict=True)]
    below = [None if v is None or lo is None else v - lo for v, lo in zip(value, low, strict=True)]
    return {"y": value, "error_y": {"type": "data", "symmetric": False, "array": above, "arrayminus": below}}


def _finite(array: np.ndarray) -> list[Any]:
    return np.where(np.isfinite(array), array.astype(object), np.array(None)).tolist()


def _cell(value: float, low: float, high: float) -> Entry:
    if np.isnan(value):
        return NOT_MEASURED
    known = not np.isnan(low)
    return Shown(Estimate(value, low, high, 0), "{:.2f} ({:.2f}-{:.2f})", 1) if known else f"{value:.2f}"
