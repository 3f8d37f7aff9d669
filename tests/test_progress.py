import subprocess
import sys
import time

import pytest
from rich.console import Console

import lab.progress
from lab.progress import announced, progress_bar, standing


@pytest.fixture
def seconds(monkeypatch):
    """A clock that a test moves."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_off_a_terminal_a_line_tells_step_rate_time_left_and_loss(seconds, capsys):
    with progress_bar() as bar:
        item = bar.add_task("training", total=3000, completed=1000, note="")
        seconds[0] += 10
        bar.update(item, completed=1100, note="loss 0.312")
    assert capsys.readouterr().out == "training  1,100/3,000  10.0/s  0:03:10 left  loss 0.312\n"


def test_lines_become_rarer_and_the_last_state_is_always_told(seconds, capsys):
    with progress_bar() as bar:
        item = bar.add_task("samples", total=36_000)
        for done in range(1, 36_000):
            seconds[0] += 1
            bar.update(item, completed=done)
    lines = capsys.readouterr().out.splitlines()
    assert 100 < len(lines) < 200  # in ten hours
    assert lines[0].startswith("samples  5/36,000")
    assert lines[-1].startswith("samples  35,999/36,000")


def test_an_error_before_the_first_task_is_the_error_that_is_told():
    with pytest.raises(OSError, match="no memory"), progress_bar():
        raise OSError("no memory")


def test_a_job_that_was_already_done_says_nothing(capsys):
    with progress_bar() as bar:
        bar.add_task("samples", total=24, completed=24)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("note", ["", "loss 2.100, valid loss 2.380"])
def test_a_bar_fits_80_columns_with_all_its_words(monkeypatch, note):
    console = Console(width=80, force_terminal=True, record=True)
    monkeypatch.setattr(lab.progress, "Console", lambda: console)
    with progress_bar() as bar:
        bar.update(bar.add_task("training", total=30_000, note=note), completed=30_000, note=note)
    *_, last = console.export_text().split("training")  # one part for each time that it was drawn
    shown = f"training{last}".strip()
    assert len(shown) <= 80
    assert "30,000/30,000" in shown
    assert "…" not in shown
    assert note in shown


def test_a_slow_job_has_seconds_for_a_rate():
    assert standing(3, 10, 0.05, 140, "") == "3/10  20.0 s each  0:02:20 left"


@pytest.mark.slow
def test_a_command_hears_nothing_of_the_libraries_that_it_imports():
    """bitsandbytes warns when it is imported on a processor for which it has no kernels; any library may warn."""
    script = """
from lab.progress import quiet_libraries
quiet_libraries()
import logging, warnings
logging.getLogger("bitsandbytes.backends.cpu.ops").warning("no kernels")
warnings.warn("Glyph 8722 missing from font(s)")
import lab.models.pretrained
from datasets import Dataset
Dataset.from_list([{"a": 1}]).to_parquet("/dev/null")
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_what_takes_long_is_announced_on_stderr_and_what_is_quick_is_not(capsys):
    with announced("loading quick", after=60):
        pass
    with announced("loading slow", after=0.01):
        time.sleep(0.3)
    assert capsys.readouterr() == ("", "loading slow\n")
