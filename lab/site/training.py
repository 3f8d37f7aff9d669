"""Training curves: the records of a run's metrics.jsonl and curve.jsonl as points for charts."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from lab.site.gather import Record
from lab.site.series import estimate

Points: TypeAlias = list[list[Any]]

QUANTITIES = {
    "loss": "training loss",
    "valid_loss": "validation loss",
    "valid_accuracy": "validation accuracy",
    "learning_rate": "learning rate",
    "grad_norm": "gradient norm",
}
POINTS = 400
"""The maximum number of points in a curve; more would not be visible in a chart."""


def of_record(record: Record) -> dict[str, Any]:
    """The training curves of a run: its metrics and its exact match during training."""
    found: dict[str, Any] = {"metrics": {}, "exact_match": {}}
    with record.noting("metrics.jsonl"):
        found["metrics"] = curves(record.run.read("metrics"))
    with record.noting("curve.jsonl"):
        found["exact_match"] = exact_match(record.run.read("curve"))
    return found


def curves(metrics: Sequence[Mapping[str, Any]]) -> dict[str, Points]:
    """[step, value] for each recorded quantity; for a group of seeds, the value of the best seed at each step."""
    found: dict[str, Points] = {}
    for row in metrics:
        for name in QUANTITIES:
            value = row.get(name)
            if isinstance(value, list) and value:
                value = max(value) if name == "valid_accuracy" else min(value)
            if isinstance(value, int | float) and "step" in row:
                found.setdefault(name, []).append([row["step"], float(f"{value:.5g}")])
    return {name: _thinned(points) for name, points in found.items()}


def exact_match(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Points]]:
    """[samples seen, estimate] by task and length, measured during training (Figures 4 and 9)."""
    found: dict[str, dict[str, Points]] = {}
    for row in rows:
        points = found.setdefault(row["task"], {}).setdefault(str(row["length"]), [])
        points.append([row["samples"], estimate(row["exact_match"])])
    return {task: {length: _thinned(p) for length, p in lengths.items()} for task, lengths in found.items()}


def _thinned(points: Points) -> Points:
    """At most POINTS of the points, spread evenly; the last point is always kept."""
    step = -(-len(points) // POINTS)
    return [point for index, point in enumerate(reversed(points)) if index % step == 0][::-1]
