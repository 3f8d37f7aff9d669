from io import StringIO

import pytest
from rich.console import Console

from lab.drawing.tables import Table


def printed(table: Table, width: int) -> list[str]:
    console = Console(width=width, record=True, file=StringIO())
    console.print(table.terminal())
    return console.export_text().splitlines()


WIDE = Table(
    "Wide",
    ("rank", "name", "layers", *(f"figure {place}" for place in range(9))),
    [("-", name, "14 of 14", *[f"{number}.25 (1.00-2.00)" for number in range(9)]) for name in ("a" * 40, "b")],
    3,
)


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_a_table_that_is_too_wide_is_cut_between_its_figures_and_none_is_lost(width):
    lines = printed(WIDE, width)
    assert all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert "…" not in text
    for place in range(9):
        assert text.count(f"figure {place}") == 1
        assert text.count(f"{place}.25 (1.00-2.00)") == 2


def test_each_part_begins_with_the_names_that_tell_its_rows_apart():
    heads = [line for line in printed(WIDE, 80) if "rank" in line]
    assert len(heads) > 1
    assert all("name" in head for head in heads)
    assert ["layers" in head for head in heads] == [True] + [False] * (len(heads) - 1)


def test_a_table_that_fits_is_one():
    table = WIDE._replace(columns=WIDE.columns[:5], rows=[row[:5] for row in WIDE.rows])
    lines = printed(table, 120)
    assert sum("rank" in line for line in lines) == 1
