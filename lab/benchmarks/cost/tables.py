"""Tables of what answers cost."""

from collections.abc import Iterator

from lab.benchmarks.results import Costs, CostSummary, VariantCosts
from lab.drawing.tables import NOT_MEASURED, Entry, Shown, Table, number, percent
from lab.numbers.statistics import Estimate

MEBI = 2**20

COSTS = ("n", "s per sample", "prompt tokens", "completion tokens", "cache, MiB", "right, %", "s per right answer")


def variants_of(summary: CostSummary) -> dict[str, VariantCosts]:
    """All variants by name; those that follow rules come first."""
    return {**summary.rule_following, **summary.direct}


def all_tables(summary: CostSummary) -> dict[str, Table]:
    return {
        "variants": variants(summary),
        "ratios": ratios(summary),
        "tasks": by_task(summary),
        "lengths": by_length(summary),
    }


def variants(summary: CostSummary) -> Table:
    """The figures of each variant as a whole: batch size, memory, tokens per forward pass."""
    rows = [
        (
            name,
            str(found.batch_size),
            f"{found.weight_bytes / MEBI:.1f}",
            f"{found.cache_bytes / MEBI:.1f}",
            f"{found.peak_bytes / MEBI:.1f}" if found.peak_bytes else NOT_MEASURED,
            significant(found.tokens_per_pass),
        )
        for name, found in variants_of(summary).items()
    ]
    title = "Batch, memory (weights; the keys and values of the fullest batch; a GPU's peak beyond the weights), and "
    title += "tokens that a request gets per forward pass (in the plain loop, finished requests stay and get none)"
    columns = ("variant", "batch", "weights, MiB", "cache of a batch, MiB", "peak, MiB", "tokens per pass")
    return Table(title, columns, rows, 1)


def ratios(summary: CostSummary) -> Table:
    """The seconds of rule following divided by the seconds of direct answers."""
    rows = []
    for task in ("overall", *tasks(summary)):
        for name, others in summary.ratios.items():
            found = [other.overall if task == "overall" else other.tasks[task] for other in others.values()]
            rows.append((task, name, *map(significant, found)))
    title = "Seconds of rule following divided by those of direct answers (95 %, over problems, not over repeated runs)"
    return Table(title, ("task", "variant", *(f"x {name}" for name in summary.direct)), rows, 2)


def by_task(summary: CostSummary) -> Table:
    """One row per task and variant, after those over all tasks."""
    found = variants_of(summary)
    rows = [("overall", name, *_cells(variant.overall)) for name, variant in found.items()]
    for task in tasks(summary):
        rows += [(task, name, *_cells(variant.tasks[task])) for name, variant in found.items()]
    title = "Cost per sample, by task (95 % interval); cache: the keys and values at its end; right: strict reading"
    return Table(title, ("task", "variant", *COSTS), rows, 2)


def by_length(summary: CostSummary) -> Table:
    """One row per task, length and variant."""
    rows = []
    for task in tasks(summary):
        for length in lengths(summary, task):
            for name, variant in variants_of(summary).items():
                rows.append((task, str(length), name, *_cells(variant.tasks[task].lengths[length])))
    return Table("Cost per sample, by task and length (95 % interval)", ("task", "length", "variant", *COSTS), rows, 3)


def in_short(summary: CostSummary) -> list[str]:
    """Three lines: accuracy, seconds per problem, and ratios of seconds.

    Each way to follow rules is compared with the direct answers of the same kind of loop.
    """
    found = {name: cost.overall for name, cost in variants_of(summary).items()}
    shares = {name: found[name].accuracy for name in (next(iter(found)), "direct")}
    right = ", ".join(f"{name} {percent(share) or 'without an answer'}" for name, share in shares.items())
    seconds = ", ".join(f"{name} {significant(cost.seconds) or 'unknown'}" for name, cost in found.items())
    like = {name: "direct, plain loop" if "plain loop" in name else "direct" for name in summary.rule_following}
    ratios = ", ".join(
        f"{name} {significant(summary.ratios[name][other].overall) or 'unknown'} times {other}"
        for name, other in like.items()
        if other in summary.direct
    )
    return [
        f"right, % (95 % interval), n={share.n if (share := shares['direct']) else 0}: {right}",
        f"seconds per problem: {seconds}",
        f"ratios of seconds: {ratios}",
    ]


def tasks(summary: CostSummary) -> list[str]:
    return list(summary.direct["direct"].tasks)


def lengths(summary: CostSummary, task: str) -> list[int]:
    return list(summary.direct["direct"].tasks[task].lengths)


def significant(estimate: Estimate | None, scale: float = 1) -> Entry:
    """An estimate with three significant digits, because seconds differ by orders of magnitude."""
    return Shown(estimate, "{:.3g} ({:.3g}-{:.3g})", scale) if estimate else NOT_MEASURED


def _cells(costs: Costs) -> Iterator[Entry]:
    yield str(costs.seconds.n if costs.seconds else 0)
    yield significant(costs.seconds)
    yield number(costs.prompt_tokens)
    yield number(costs.completion_tokens)
    yield significant(costs.cache_bytes, 1 / MEBI)
    yield percent(costs.accuracy)
    yield significant(costs.seconds_per_correct)
