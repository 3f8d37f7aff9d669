"""A measured array as a table and as a plotly figure."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from lab.drawing.tables import NOT_MEASURED, Entry, Shown, Table
from lab.numbers.statistics import Estimate

_GROWING = ((0, "#ffffff"), (1, "#0a6ebd"))
_DIVERGING = ((0, "#c0392b"), (0.5, "#ffffff"), (1, "#0a6ebd"))
_NOTHING = 0.005
"""What two decimals show as nothing."""
_LARGER = 10
"""Arrays whose largest values differ by a larger factor do not share a scale."""


_AXIS = {"type": "category", "automargin": True}


class Labelled(NamedTuple):
    """Values with their intervals and their axes. Each array has one dimension for each axis; nan: not measured."""

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
    """A plotly figure of arrays with the same axes: a heat map of layers and heads, or of the last two axes if these
    are not among the axes; points with intervals if there is only one axis.

    Several arrays, such as an effect and its control, are drawn beside each other on one scale. A menu chooses the
    labels of all other axes; at first, it shows the combination with the largest value. Raises ValueError for arrays
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
    for index, trace in enumerate(traces):
        trace |= {key: parts[index] for key, parts in updates[active].items()}
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
    """Groups successive arrays with the same axes, which share a figure. An array with much larger values than the
    first array of the group begins a new group, because the first one could not be seen on its scale."""
    found: list[list[Labelled]] = []
    for one in measured:
        before = found[-1][0] if found else None
        if before and one.axes and before.axes == one.axes and _size(one) <= _LARGER * _size(before):
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _size(measured: Labelled) -> float:
    """The largest absolute value; 0 if nothing was measured."""
    return float(np.abs(measured.value).max(where=np.isfinite(measured.value), initial=0.0))


Updates: TypeAlias = list[dict[str, Any]]
"""For each choice of the menu, the properties that it sets, with one value for each trace."""


def _maps(arrays: Sequence[Labelled], shown: Sequence[str]) -> tuple[Any, Any, Updates]:
    axes, count, gap = arrays[0].axes, len(arrays), 0.04
    width = (1 + gap) / count
    bound = max(map(_size, arrays)) or 1.0
    diverging = any((one.value < 0).any() for one in arrays)
    down, across = ([str(label) for label in axes[name]] for name in shown)
    hover = f"{shown[0]} %{{y}}, {shown[1]} %{{x}}: %{{z:.3f}}<extra></extra>"
    trace = {"type": "heatmap", "x": across, "y": down, "coloraxis": "coloraxis", "hovertemplate": hover}
    scale = {"colorscale": _DIVERGING, "cmin": -bound} if diverging else {"colorscale": _GROWING, "cmin": 0}
    layout: dict[str, Any] = {"coloraxis": {**scale, "cmax": bound}, "annotations": []}
    traces = []
    for n, one in enumerate(arrays):
        number, left = str(n + 1) if n else "", n * width
        traces.append({**trace, "xaxis": f"x{number}", "yaxis": f"y{number}"})
        domain = [left, min(1.0, left + width - gap)]
        y_labels = {"showticklabels": False} if n else {"title": {"text": shown[0]}}
        layout[f"xaxis{number}"] = {**_AXIS, "title": {"text": shown[1]}, "domain": domain, "anchor": f"y{number}"}
        layout[f"yaxis{number}"] = {**_AXIS, **y_labels, "autorange": "reversed", "anchor": f"x{number}"}
        if count > 1:
            place = {"x": left, "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper", "yanchor": "bottom"}
            layout["annotations"].append({"text": one.name, "showarrow": False, **place})
    updates = [{"z": [_finite(one.value[choice]) for one in arrays]} for choice in range(len(arrays[0].value))]
    return traces, layout, updates


def _lines(arrays: Sequence[Labelled], shown: str) -> tuple[Any, Any, Updates]:
    across = [str(label) for label in arrays[0].axes[shown]]
    traces = [{"type": "scatter", "mode": "markers+lines", "x": across, "name": one.name} for one in arrays]
    legend = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"}
    layout = {"xaxis": {**_AXIS, "title": {"text": shown}}, "legend": legend}
    updates = []
    for choice in range(len(arrays[0].value)):
        points = [_points(*(_finite(part[choice]) for part in (one.value, one.low, one.high))) for one in arrays]
        updates.append({key: [one[key] for one in points] for key in ("y", "error_y")})
    return traces, layout, updates


def _by_choice(measured: Labelled, ordered: Sequence[str], chosen: int) -> Labelled:
    """The arrays with their axes in this order; the first `chosen` axes become one, (choices, *shown)."""
    order = [list(measured.axes).index(name) for name in ordered]
    turned = (array.transpose(order) for array in measured.arrays)
    value, low, high, n = (array.reshape(-1, *array.shape[chosen:]) for array in turned)
    return measured._replace(value=value, low=low, high=high, n=n)


def _largest(values: np.ndarray) -> int:
    """The choice with the largest absolute value; the first choice if nothing was measured."""
    flat = np.where(np.isfinite(values), np.abs(values), -1.0).reshape(len(values), -1)
    return int(flat.max(-1).argmax())


def _with_an_axis(measured: Labelled) -> Labelled:
    """Turns a single value into an array with one axis, which has no name."""
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
    value, low, high = (0.0 if abs(one) < _NOTHING else one for one in (value, low, high))  # not "-0.00"
    return Shown(Estimate(value, low, high, 0), "{:.2f} ({:.2f}-{:.2f})", 1) if known else f"{value:.2f}"
