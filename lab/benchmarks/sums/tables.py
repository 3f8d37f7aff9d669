"""Tables of the benchmarks that ask for one sum (two integers, carry-free); summaries are side by side, by label."""

from collections.abc import Mapping

from lab.benchmarks.results import SUM_READINGS, SumsSummary
from lab.drawing.tables import Table, number, percent
from lab.numbers.taxonomy import OUTCOMES

KINDS = {
    "format_failures": "Answers that are not an integer, by kind",
    "wrong_sums": "What wrong sums have in common (several may hold)",
    "parse_errors": "Answers without a number in the last box, by kind",
    "flags": "Flags besides the class",
    "right_in_text": "Right sums that were written but not given as the answer",
}


def all_tables(summaries: Mapping[str, SumsSummary]) -> dict[str, Table]:
    """All tables, by file name."""
    found = {"success": success(summaries), "outcomes": outcomes(summaries), "by_digits": by_digits(summaries)}
    counted = [name for name in KINDS if all(getattr(summary, name) is not None for summary in summaries.values())]
    return found | {name: counts(summaries, name) for name in counted}


def success(summaries: Mapping[str, SumsSummary]) -> Table:
    """Rates among the answered questions and among all (which counts API errors as wrong), and costs."""
    readings = readings_of(summaries)
    rows = [
        (
            label,
            str(summary.asked),
            str(summary.api_errors),
            *(percent(summary.success_rate.get(reading)) for reading in readings),
            percent(summary.success_rate_of_asked["strict"]),
            number(summary.seconds.mean),
            str(summary.tokens["completion"]),
        )
        for label, summary in summaries.items()
    ]
    shares = [f"{reading} %" for reading in readings]
    columns = ("model", "asked", "API errors", *shares, "strict % of asked", "s/answer", "tokens written")
    return Table("Right sums (95 % interval)", columns, rows, 1)


def in_short(summary: SumsSummary) -> list[str]:
    """Two lines: right sums in every reading, and what happened to the others."""
    shares = {reading: summary.success_rate.get(reading) for reading in readings_of({"": summary})}
    right = ", ".join(f"{reading} {percent(share)}" for reading, share in shares.items() if share)
    others = sorted(((count, name) for name, count in summary.outcomes.items() if count), reverse=True)
    if not summary.answered:
        return ["right sums: no question was answered"]
    return [
        f"right sums, % (95 % interval), n={summary.answered}: {right}",
        f"outcomes: {', '.join(f'{name} {count}' for count, name in others)}",
    ]


def outcomes(summaries: Mapping[str, SumsSummary]) -> Table:
    rows = [
        (
            label,
            str(summary.answered),
            *(f"{summary.outcomes[name]} ({_share(summary, name)})" for name in OUTCOMES),
            str(summary.api_errors),
        )
        for label, summary in summaries.items()
    ]
    columns = ("model", "answered", *OUTCOMES, "API errors")
    return Table("Outcomes, strict reading: number (% of answered questions)", columns, rows, 1)


def by_digits(summaries: Mapping[str, SumsSummary]) -> Table:
    readings = readings_of(summaries)
    rows = []
    for length in sorted({length for summary in summaries.values() for length in summary.by_digits}):
        cells = [summary.by_digits.get(length) for summary in summaries.values()]
        found = [cell and cell.rate(reading) for cell in cells for reading in readings]
        rows.append((str(length), *map(percent, found)))
    labels = [f"{label}, {reading} %" for label in summaries for reading in readings]
    return Table("Right sums by digits (95 % interval)", ("digits", *labels), rows, 1)


def counts(summaries: Mapping[str, SumsSummary], name: str) -> Table:
    found = {label: getattr(summary, name) for label, summary in summaries.items()}
    kinds = list(next(iter(found.values())))
    rows = [(label, *(str(numbers[kind]) for kind in kinds)) for label, numbers in found.items()]
    return Table(KINDS[name], ("model", *kinds), rows, 1)


def readings_of(summaries: Mapping[str, SumsSummary]) -> list[str]:
    """The readings that any of the summaries has, in the order in which they are shown."""
    found = {reading for summary in summaries.values() for reading in summary.success_rate}
    return [reading for reading in SUM_READINGS if reading in found]


def _share(summary: SumsSummary, outcome: str) -> str:
    share = summary.outcome_shares[outcome]
    return f"{100 * share.value:.0f}" if share else "-"
