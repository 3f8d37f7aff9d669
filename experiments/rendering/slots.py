"""What the slots of a page show: slots.yaml says how numbers, tables and the figure follow from the results files.

    numbers:
      thousand: share(trained="4 digits", digits=1000) | percent
    tables:
      lengths:
        head: trained on
        rows:
          at most 4 digits: {trained: 4 digits}
        columns:
          seeds: seeds()
          "1,000 digits": share(digits=1000)
    figure: {x: digits, line: trained}

An expression is one of Jinja's, with these functions. All take settings, such as digits=1000 or seed=[0, 1], which
choose rows; `of="wordings"` reads wordings.csv instead of results.csv. In a table, the settings of the row are added,
and those of the expression come first.

    share()             the share of right answers with its interval (`Rows.share`): "99.5 (98.8-100)"
    count()             "400 of 400"
    right(), asked()    the number of right answers, and of problems
    seeds()             the number of trainings
    lowest(), highest() the share of the worst and of the best seed
    each()              the share of each seed: "100, 74, 36"
    cell()              a row as it was published: "99.5 (98.8-100)", or its share
    points()            a difference as it was published, with its signs: "+22.9 (+3.0 to +42.8)"
    every("column")     the cells of a column: "47, 53, 45"
    average("column")   the mean of the shares of each value of a column, without an interval
    value("column")     the cell of a column as a number; there must be one row
    ratio("a", "b")     the cell of one column divided by that of another: "2.9"
    least("column")     the smallest number of a column; most("column"): the largest
    percent_of("column")  the same, of a share from 0 to 1, in percent
    span("column")      "42 to 104", from the smallest to the largest; "> 640" is larger than any number, and never
    mean("column")      the mean of a column over the rows, with Student's interval
    text("column")      the cell of a column as it stands in the file
    rows()              the number of rows

Filters say how a number is written: `percent` puts the sign, `alone` leaves out the interval, `places(1)` is the number
of decimals. With `blank=true`, a cell without a row stays empty.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jinja2
import yaml
from pydantic import Field, ValidationError

from experiments.rendering.rows import Row, Rows, read_rows
from lab.config.schema import Section
from lab.drawing.tables import Table
from lab.errors import LabError, RunError, mistakes
from lab.numbers.statistics import Estimate


class TableSlot(Section):
    """A table: a line for each of `rows`, a cell for each of `columns`."""

    rows: dict[str, dict[str, Any]]
    """The settings of each line, by its name. If several columns name a line, a bar stands between them: "add | 5"."""
    columns: dict[str, str]
    """The expression of each column, by its heading."""
    head: str = ""
    """The heading of the names."""
    where: dict[str, Any] = Field(default_factory=dict)
    """The settings of all cells."""


class FigureSlot(Section):
    """A figure of the results: curves of `y` by `x`, in one panel or several (experiments/rendering/figures.py)."""

    y: str = "share()"
    """The expression of a point."""
    x: str = "digits"
    """The column of the x axis, whose values are numbers."""
    of: str = "results"
    """The results file."""
    where: dict[str, Any] = Field(default_factory=dict)
    """The settings of all points."""
    line: str = ""
    """The column that tells lines apart, if `lines` does not name them."""
    lines: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The settings of each line, by its name in the legend."""
    panel: str = ""
    panels: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The settings of each panel, by its title; or the column that tells panels apart is `panel`."""
    x_label: str = "digits"
    y_label: str = "exact match"
    log: bool = False
    """Whether the y axis is logarithmic; otherwise it goes from 0 to 1."""
    trained: int = 0
    """The longest trained length, up to which the figure is grey."""


class Slots(Section):
    numbers: dict[str, str] = Field(default_factory=dict)
    tables: dict[str, TableSlot] = Field(default_factory=dict)
    figure: FigureSlot | None = None


class Shown(NamedTuple):
    """An estimate of a share in percent, or of a mean, and how it is written."""

    estimate: Estimate
    scale: float = 100
    places: int = 0
    interval: bool = True
    sign: str = ""

    def __str__(self) -> str:
        value, low, high, _ = self.estimate
        limits = f" ({self._number(low)}-{self._number(high)})" if self.interval and math.isfinite(low) else ""
        return f"{self._number(value)}{self.sign}{limits}"

    def _number(self, value: float) -> str:
        return f"{self.scale * value + 1e-9:,.{self.places}f}"  # a published 92.5 is 93


class Expressions:
    """Computes the expressions of a folder's slots from its results files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[str, Rows] = {}
        self.environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
        self.environment.filters |= {"percent": _percent, "alone": _alone, "places": _places}

    def file(self, name: str) -> Rows:
        """The rows of <name>.csv."""
        if name not in self.known:
            self.known[name] = read_rows(self.folder / f"{name}.csv")
        return self.known[name]

    def text(self, expression: str, slot: str, settings: Mapping[str, Any] | None = None) -> str:
        """The text of an expression. Raises RunError as `value` does."""
        return _written(self.value(expression, slot, settings or {}))

    def value(self, expression: str, slot: str, settings: Mapping[str, Any]) -> Any:
        """The value of an expression. Raises RunError, which names the folder's slots.yaml and the slot."""
        try:
            compiled = self.environment.compile_expression(expression, undefined_to_none=False)
            return compiled(**self._functions(settings))
        except (jinja2.TemplateError, LabError, TypeError, ValueError, ZeroDivisionError) as error:
            raise RunError(f"{self.folder / 'slots.yaml'}: {slot}: {' '.join(str(error).split())}") from None

    def _functions(self, fixed: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
        def chosen(settings: Mapping[str, Any]) -> Rows:
            asked = {**fixed, **settings}
            return self.file(asked.pop("of", "results")).where(**asked)

        def function(compute: Callable[..., Any]) -> Callable[..., Any]:
            def called(*names: str, blank: bool = False, **settings: Any) -> Any:
                try:
                    return compute(chosen(settings), *names)
                except RunError as error:
                    if blank and "no row with" in str(error):
                        return ""
                    raise

            return called

        return {name: function(compute) for name, compute in FUNCTIONS.items()}


def _plain(number: float, scale: float = 1, places: int = 0) -> Shown:
    """A number without an interval."""
    return Shown(Estimate(number, -math.inf, math.inf, 1), scale, places, interval=False)


def _as_published(row: Row) -> str:
    limits = f" ({row['low']}-{row['high']})" if row.get("low") else ""
    return row.get("text") or f"{row['value']}{limits}"


def _span(cells: Sequence[str]) -> str:
    """The smallest and the largest of the numbers; "> 640" is larger than any number."""
    numbers = [math.inf if cell.startswith(">") else float(cell) for cell in cells]
    ends = ["never" if math.isinf(end) else f"{end:,g}" for end in (min(numbers), max(numbers))]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "share": lambda rows: Shown(rows.share()),
    "count": lambda rows: f"{rows.whole('right'):,} of {rows.whole('n'):,}",
    "right": lambda rows: rows.whole("right"),
    "asked": lambda rows: rows.whole("n"),
    "seeds": lambda rows: rows.trainings(),
    "lowest": lambda rows: _plain(min(one.proportion() for one in rows.seeds()), scale=100),
    "highest": lambda rows: _plain(max(one.proportion() for one in rows.seeds()), scale=100),
    "cell": lambda rows: str(Shown(rows.share())) if rows.counted() else _as_published(rows.single()),
    "points": lambda rows: "{:+.1f} ({:+.1f} to {:+.1f})".format(
        *(rows.number(name) for name in ("value", "low", "high"))
    ),
    "every": lambda rows, column: ", ".join(row[column] for row in rows.rows),
    "average": lambda rows, column: _plain(
        sum(part.share().value for part in rows.by(column).values()) / len(rows.by(column)), scale=100
    ),
    "each": lambda rows: ", ".join(f"{100 * one.proportion():.0f}" for one in rows.seeds()) if rows.counted() else "",
    "value": lambda rows, column: _plain(rows.number(column)),
    "ratio": lambda rows, above, below: _plain(rows.number(above) / rows.number(below), places=1),
    "least": lambda rows, column: _plain(min(rows.numbers(column))),
    "most": lambda rows, column: _plain(max(rows.numbers(column))),
    "percent_of": lambda rows, column: _plain(rows.number(column), scale=100),
    "span": lambda rows, column: _span([row[column] for row in rows.rows]),
    "mean": lambda rows, column: Shown(rows.mean(column), scale=1),
    "text": lambda rows, column: rows.single()[column],
    "rows": lambda rows: len(rows.rows),
}


def read_slots(folder: Path) -> Slots:
    """The slots of a finding's folder; none without slots.yaml. Raises RunError with a line for each problem."""
    file = folder / "slots.yaml"
    if not file.is_file():
        return Slots()
    try:
        return Slots.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise RunError(f"{file}: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        raise RunError("\n".join(f"{file}: {line}" for line in mistakes(error))) from None


def table_of(slot: TableSlot, name: str, expressions: Expressions) -> str:
    """The table in Markdown."""
    heads = tuple(part.strip() for part in slot.head.split("|"))
    rows = [
        (
            *(part.strip() for part in label.split("|")),
            *(
                expressions.text(expression, f"table {name}, {label}, {column}", {**slot.where, **settings})
                for column, expression in slot.columns.items()
            ),
        )
        for label, settings in slot.rows.items()
    ]
    return Table("", (*heads, *slot.columns), rows, len(heads)).markdown()


def _percent(shown: Shown | Literal[""]) -> Shown | Literal[""]:
    return shown and shown._replace(sign=" %")


def _alone(shown: Shown | Literal[""]) -> Shown | Literal[""]:
    return shown and shown._replace(interval=False)


def _places(shown: Shown | Literal[""], places: int) -> Shown | Literal[""]:
    return shown and shown._replace(places=places)


def _written(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}" if isinstance(value, float) else str(value)
