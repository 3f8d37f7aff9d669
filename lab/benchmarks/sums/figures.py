"""Figures of the benchmarks that ask for one sum: accuracy and outcomes by digits."""

from collections.abc import Mapping
from pathlib import Path

from lab.benchmarks.results import SumsSummary
from lab.benchmarks.sums.tables import readings_of
from lab.drawing.figures import COLORS, figure_at, legend_below, legend_in, line_with_band, plain, say_if_empty
from lab.numbers.taxonomy import OUTCOMES

LINES = {"loose": "--", "final": ":"}

OUTCOME_COLORS = ("#4c9f70", "#d9822b", "#e8c15a", "#8a5fbf", "#c0504d", "#b0b0b0")
OUTCOMES_IN_WORDS = (
    *("right", "too high, as by a carry too many", "too low, as by a missed carry"),
    *("two digits swapped", "another wrong integer", "no integer as the answer"),
)
"""For each of OUTCOMES."""


def accuracy_by_digits(summaries: Mapping[str, SumsSummary], title: str, path: Path) -> None:
    """Right sums against digits: a line for each model and reading; the strict one is solid, with a 95 % interval."""
    with figure_at(path, figsize=(7, 3.8)) as figure:
        axes = figure.subplots()
        for index, (label, summary) in enumerate(summaries.items()):
            color = COLORS[index % len(COLORS)]
            for reading in readings_of({label: summary}):
                points = {n: found for n, rates in summary.by_digits.items() if (found := rates.rate(reading))}
                if not points:
                    continue
                if reading == "strict":
                    line_with_band(axes, points, color=color, label=plain(label))
                else:
                    values = [points[n].value for n in sorted(points)]
                    name = plain(f"{label}, {reading}")
                    axes.plot(sorted(points), values, LINES[reading], lw=1, color=color, label=name)
        say_if_empty(axes)
        axes.set(ylim=(-0.02, 1.02), xlabel="digits", ylabel="right sums (95 % Wilson interval)", title=plain(title))
        axes.grid(color="#eeeeee")
        legend_in(axes)


def outcomes_by_digits(summary: SumsSummary, title: str, path: Path) -> None:
    """Stacked bars, one for each number of digits, in percent: right sums, error classes, answers without a number.
    Above each bar is the number of answered questions; outcomes that do not occur have no key."""
    with figure_at(path, figsize=(7, 3.8)) as figure:
        axes = figure.subplots()
        digits = sorted(summary.by_digits)
        bottom = [0.0] * len(digits)
        for name, words, color in zip(OUTCOMES, OUTCOMES_IN_WORDS, OUTCOME_COLORS, strict=True):
            found = [summary.by_digits[n].outcome_shares[name] for n in digits]
            shares = [100 * share.value if share else 0.0 for share in found]
            if any(shares):
                axes.bar(digits, shares, 0.85, bottom=bottom, color=color, label=words)
            bottom = [below + share for below, share in zip(bottom, shares, strict=True)]
        for place in digits:
            axes.annotate(str(summary.by_digits[place].answered), (place, 101), ha="center", fontsize=6)
        say_if_empty(axes)
        axes.set(ylim=(0, 107), xlabel="digits (above the bars: n)", ylabel="% of answered questions")
        axes.set_title(plain(title))
        axes.set_yticks(range(0, 101, 20))
        legend_below(figure, 3)


def all_figures(summaries: Mapping[str, SumsSummary], title: str, folder: Path) -> None:
    """Draws the accuracy of all models by digits, and the outcomes of each model."""
    accuracy_by_digits(summaries, f"{title}: {', '.join(summaries)}", folder / "accuracy.png")
    for number, (label, summary) in enumerate(summaries.items(), start=1):
        name = f"outcomes_{number}.png" if len(summaries) > 1 else "outcomes.png"
        outcomes_by_digits(summary, f"{title}: {label}" if len(summaries) > 1 else title, folder / name)
