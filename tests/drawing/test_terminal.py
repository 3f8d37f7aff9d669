"""The lines that a command ends with."""

import subprocess
import sys

from lab.drawing.tables import Table
from lab.drawing.terminal import LONGEST_TABLE, end, ranked, show
from lab.numbers.statistics import wilson


def test_groups_are_named_from_the_highest_and_those_at_zero_are_counted():
    shares = {"add": wilson(0, 9), "max": wilson(4, 4), "sub": wilson(0, 9), "length": wilson(1, 2)}
    assert ranked(shares) == "max 100 (51-100), length 50 (9-91), 0 in 2 others"


def test_more_groups_than_a_line_names_are_summed_up_by_their_span():
    rights = {"a": 10, "b": 10, "c": 9, "d": 8, "e": 7, "f": 5, "g": 0}
    named = "a 100 (72-100), b 100 (72-100), c 90 (60-98), d 80 (49-94)"
    assert ranked({name: wilson(right, 10) for name, right in rights.items()}) == f"{named}, 0 to 70 in 3 others"


def test_a_single_group_that_is_left_is_named():
    assert ranked({"a": wilson(1, 2), "b": wilson(0, 2)}) == "a 50 (9-91), b 0 (0-66)"


def test_groups_that_are_all_at_zero_are_one_figure():
    assert ranked({"a": wilson(0, 2), "b": wilson(0, 2)}) == "0 in 2 groups, all"


def test_long_tables_stay_on_disk(capsys):
    short, long = (Table(name, ("task",), [(f"t{n}",) for n in range(rows)], 1) for name, rows in
                   (("short", LONGEST_TABLE), ("long", LONGEST_TABLE + 1)))  # fmt: skip
    show([short, long])
    printed = capsys.readouterr().out
    assert "short" in printed
    assert "long" not in printed


def test_a_command_ends_with_what_was_found_where_it_is_and_what_comes_next(capsys):
    end(["7 of 8 right"], "runs/a", "lab report runs/a")
    assert capsys.readouterr().out == "7 of 8 right\nrun directory: runs/a\nnext: lab report runs/a\n"


def test_a_table_for_a_program_that_has_gone_ends_the_command_as_print_does():
    code = "from lab.list import main; main(['tasks'])"
    command = f'{sys.executable} -c "{code}" | true; echo ${{PIPESTATUS[0]}}'
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("141\n", "")
