"""Figures of the benchmarks that ask for one sum: accuracy and outcomes by digits."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.benchmarks.sums.scoring import readings_of
from lab.drawing.figures import COLORS, figure_at, plain
from lab.numbers.taxonomy import OUTCOMES

Summaries = Mapping[str, Mapping[str, Any]]

LINES = {"strict": "o-", "loose": "--", "final": ":"}

OUTCOME_COLORS = ("#4c9f70", "#d9822b", "#e8c15a", "#8a5fbf", "#c0504d", "#b0b0b0")


def accuracy_by_digits(summaries: Summaries, title: str, path: Path) -> None:
    """Right sums against digits, a line a model and reading: strict solid, with its 95 % interval, loose dashed, final
    dotted."""
    with figure_at(path, figsize=(7, 3.8)) as figure:
        axes = figure.subplots()
        for number, (label, summary) in enumerate(summaries.items()):
            color = COLORS[number % len(COLORS)]
            digits = sorted(map(int, summary["by_digits"]))
            cells = [summary["by_digits"][str(n)] for n in digits]
            for reading in readings_of(summary["success_rate"]):
                values = [cell[reading]["value"] for cell in cells]
                name = plain(label if reading == "strict" else f"{label}, {reading}")
                axes.plot(digits, values, LINES[reading], ms=3, lw=1.2, color=color, label=name)
            strict = [cell["strict"] for cell in cells]
            axes.fill_between(
                digits, [e["low"] for e in strict], [e["high"] for e in strict], color=color, alpha=0.15, lw=0
            )
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("digits")
        axes.set_ylabel("right sums (95 % Wilson interval)")
        axes.set_title(plain(title), fontsize=10)
        axes.grid(color="#eeeeee")
        axes.legend(fontsize=8)


def outcomes_by_digits(summary: Mapping[str, Any], title: str, path: Path) -> None:
    """Bars stacked to 100 %, one for each number of digits: right sums, classes of error, answers without a number."""
    with figure_at(path, figsize=(7, 3.8)) as figure:
        axes = figure.subplots()
        digits = sorted(map(int, summary["by_digits"]))
        bottom = [0.0] * len(digits)
        for name, color in zip(OUTCOMES, OUTCOME_COLORS, strict=True):
            shares = [100 * summary["by_digits"][str(n)]["outcome_shares"][name]["value"] for n in digits]
            axes.bar(digits, shares, 0.85, bottom=bottom, color=color, label=name)
            bottom = [below + share for below, share in zip(bottom, shares, strict=True)]
        axes.set_ylim(0, 100)
        axes.set_xlabel("digits")
        axes.set_ylabel("% of what was answered")
        axes.set_title(plain(title), fontsize=10)
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
