"""What an instrument returns: an array with named axes, its intervals, and the number of samples behind each value."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lab.errors import RunError, TaskError
from lab.numbers.statistics import mean_share
from lab.probing.charts import Labelled, figure, table

if TYPE_CHECKING:
    import pandas
    import plotly.graph_objects

_RESAMPLES = 1000
_SHOWN_ROWS = 20


Axes: TypeAlias = Mapping[str, Sequence[Any]]
"""Names and labels of dimensions, such as {"layer": [0, 1], "head": [0, 1, 2, 3]}."""


class Measured(Labelled):
    """Labelled arrays that can be made from samples, sliced, printed, drawn and stored."""

    @classmethod
    def mean(cls, name: str, axes: Axes, samples: np.ndarray) -> "Measured":
        """Means over the rows of `samples` (N, *axes), with percentile bootstrap intervals. nan marks a missing sample.

        Raises ValueError if the shape does not fit the axes, or if there are no rows.
        """
        return cls.ratio(name, axes, samples, np.ones(len(samples)))

    @classmethod
    def ratio(cls, name: str, axes: Axes, samples: np.ndarray, scale: np.ndarray) -> "Measured":
        """Means of `samples` (N, *axes), each divided by the mean of `scale` over the same rows. Intervals are
        percentile bootstrap intervals of the ratio: a resample draws rows of both together.

        Args:
            samples: nan marks a missing sample.
            scale: of shape (N, *the first few axes); it applies to all labels of the remaining axes. The ratio is nan
                if the scale of any sample is.

        Raises ValueError if the shape does not fit the axes, or if there are no rows.
        """
        samples = np.asarray(samples, dtype=float)
        _check(axes, samples.shape[1:])
        if len(samples) == 0:
            raise ValueError(f"{name}: no samples to take the mean of")
        flat_NX = samples.reshape(len(samples), -1)
        there_NX = ~np.isnan(flat_NX)
        filled_NX = np.where(there_NX, flat_NX, 0.0)
        scale = np.broadcast_to(scale.reshape(*scale.shape, *[1] * (samples.ndim - scale.ndim)), samples.shape)
        scale_NX = np.where(there_NX, scale.reshape(flat_NX.shape), 0.0)
        counts_X = there_NX.sum(0)
        drawn_RN = np.random.default_rng(0).multinomial(len(samples), [1 / len(samples)] * len(samples), _RESAMPLES)
        with np.errstate(invalid="ignore"):
            value_X = filled_NX.sum(0) / scale_NX.sum(0)
            ratios_RX = (drawn_RN @ filled_NX) / (drawn_RN @ scale_NX)
        low_X, high_X = np.full_like(value_X, np.nan), np.full_like(value_X, np.nan)
        known_X = ~np.isnan(value_X)
        if known_X.any():
            low_X[known_X], high_X[known_X] = np.nanquantile(ratios_RX[:, known_X], [0.025, 0.975], axis=0)
        shape = samples.shape[1:]
        arrays = (array.reshape(shape) for array in (value_X, low_X, high_X, counts_X))
        return cls(name, {key: list(labels) for key, labels in axes.items()}, *arrays)

    @classmethod
    def share(cls, name: str, axes: Axes, samples: np.ndarray) -> "Measured":
        """Means of `samples` (N, *axes) with Wilson's intervals. A sample is a number from 0 to 1; nan marks a missing
        sample.

        Raises ValueError if the shape does not fit the axes.
        """
        samples = np.asarray(samples, dtype=float)
        _check(axes, samples.shape[1:])
        there = ~np.isnan(samples)
        n = there.sum(0)
        value, low, high = (np.full(n.shape, np.nan) for _ in range(3))
        for index in np.ndindex(n.shape):
            if n[index]:
                at = (slice(None), *index)
                value[index], low[index], high[index], _ = mean_share(samples[at][there[at]])
        return cls(name, {key: list(labels) for key, labels in axes.items()}, value, low, high, n)

    def at(self, **labels: Any) -> "Measured":
        """The slice at these labels, without their axes: `at(layer=3)`. Raises KeyError for an unknown axis or
        label."""
        index: list[Any] = []
        for axis, known in self.axes.items():
            if axis in labels and labels[axis] not in known:
                raise KeyError(f"{self.name} has no {axis} {labels[axis]!r}; it has {known}")
            index.append(known.index(labels[axis]) if axis in labels else slice(None))
        if unknown := labels.keys() - self.axes.keys():
            raise KeyError(f"{self.name} has no axis {', '.join(unknown)}; it has {', '.join(self.axes)}")
        axes = {axis: known for axis, known in self.axes.items() if axis not in labels}
        return Measured(self.name, axes, *(array[tuple(index)] for array in self.arrays))

    def only(self, axis: str, labels: Sequence[Any]) -> "Measured":
        """The slice at several labels of one axis, which keeps the axis. Raises ValueError for an unknown label."""
        where, chosen = list(self.axes).index(axis), [self.axes[axis].index(label) for label in labels]
        return Measured(self.name, {**self.axes, axis: list(labels)}, *(np.take(a, chosen, where) for a in self.arrays))

    def __repr__(self) -> str:
        """The name, the axes, and a table of the values with their intervals; a long table shows its first rows."""
        shown = table(self)
        left_out = len(shown.rows) - _SHOWN_ROWS
        more = f"... and {left_out} more rows\n" if left_out > 0 else ""
        axes = ", ".join(f"{axis} ({len(labels)})" for axis, labels in self.axes.items()) or "none"
        return f"{shown.title}; axes: {axes}\n{shown._replace(rows=shown.rows[:_SHOWN_ROWS]).markdown()}{more}"

    def to_frame(self) -> "pandas.DataFrame":
        """A row for each combination of labels: a column for each axis, then value, low, high and n."""
        import pandas

        labels = pandas.DataFrame(list(itertools.product(*self.axes.values())), columns=list(self.axes))
        arrays = {key: array.reshape(-1) for key, array in zip(self._fields[2:], self.arrays, strict=True)}
        return labels.assign(**arrays)

    def plot(self) -> "plotly.graph_objects.Figure":
        """A heat map of the last two axes, or points with intervals if there is only one axis. A menu chooses the
        labels of all other axes."""
        from plotly.graph_objects import Figure

        drawn = figure(self)
        return Figure(drawn["data"], {**drawn["layout"], "title": {"text": self.name}})

    def to_json(self) -> dict[str, Any]:
        """Nested lists, with None for nan, which any language can read."""
        arrays = {key: _listed(array) for key, array in zip(self._fields[2:], self.arrays, strict=True)}
        return {"name": self.name, "axes": self.axes, **arrays}

    @classmethod
    def from_json(cls, read: Mapping[str, Any]) -> "Measured":
        """Reads what `to_json` made. Raises RunError for anything else."""
        try:
            value, low, high = (np.array(read[key], dtype=float) for key in ("value", "low", "high"))
            found = cls(read["name"], dict(read["axes"]), value, low, high, np.array(read["n"]))
            _check(found.axes, value.shape)
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(f"not a measured array: {error}") from None
        return found


def nanmean(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """The mean over an axis of the values that are not nan; nan, without a warning, if there are none."""
    there = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(there, values, 0).sum(axis) / there.sum(axis)


def signed_max_over_directions(values: np.ndarray) -> np.ndarray:
    """The value with the larger absolute value along the first axis, which usually holds the two directions of the
    carry; nan counts as 0."""
    known = np.nan_to_num(values)
    return np.take_along_axis(known, np.abs(known).argmax(0)[None], 0)[0]


def max_abs_over_directions(values: np.ndarray) -> np.ndarray:
    """The absolute value of `signed_max_over_directions`."""
    return np.abs(signed_max_over_directions(values))


def value_and_interval(resampled_RX: np.ndarray) -> np.ndarray:
    """Value, low and high, (3, X): the first row is the value, and the percentiles of all other rows, which come from
    resamples, are the bounds of its 95 % interval."""
    return np.stack([resampled_RX[0], *np.quantile(resampled_RX[1:], [0.025, 0.975], axis=0)])


def joined(axis: str, parts: Mapping[Any, Measured], first: bool = False) -> Measured:
    """Joins measured arrays with the same axes along a new axis, whose labels are the keys of `parts`. The new axis is
    the last one, or the first one if `first` is true. Raises TaskError if there are no parts."""
    if not parts:
        raise TaskError(f"{axis}: give at least one")
    one, new = next(iter(parts.values())), {axis: list(parts)}
    axis_index = 0 if first else -1
    arrays = (np.stack(same, axis_index) for same in zip(*(part.arrays for part in parts.values()), strict=True))
    return Measured(one.name, {**new, **one.axes} if first else {**one.axes, **new}, *arrays)


def _check(axes: Axes, shape: tuple[int, ...]) -> None:
    expected = tuple(len(labels) for labels in axes.values())
    if shape != expected:
        raise ValueError(f"an array of shape {shape} for axes {dict(zip(axes, expected, strict=True))}")


def _listed(array: np.ndarray) -> Any:
    return np.where(np.isnan(array), np.array(None), array).tolist() if array.dtype.kind == "f" else array.tolist()
