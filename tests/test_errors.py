import errno
import subprocess
import sys

import pytest

from lab.errors import ConfigError, LabError, ModelError, RunError, TaskError, exit_cleanly


def raising(error: BaseException):
    @exit_cleanly
    def main() -> None:
        """Do the work."""
        raise error

    return main


@pytest.mark.parametrize("kind", [LabError, ConfigError, RunError, ModelError, TaskError])
def test_what_the_user_can_put_right_exits_with_status_2(kind, capsys):
    with pytest.raises(SystemExit) as exit:
        raising(kind("the name is in use"))()
    assert exit.value.code == 2
    assert capsys.readouterr() == ("", "error: the name is in use\n")


def test_each_problem_has_a_line_of_its_own(capsys):
    with pytest.raises(SystemExit):
        raising(ConfigError("a: missing\nb: missing"))()
    assert capsys.readouterr().err == "error: a: missing\nerror: b: missing\n"


def test_an_error_without_a_text_still_says_what_it_is(capsys):
    with pytest.raises(SystemExit):
        raising(RunError())()
    assert capsys.readouterr().err == "error: RunError\n"


def test_an_interrupt_exits_as_a_shell_expects(capsys):
    with pytest.raises(SystemExit) as exit:
        raising(KeyboardInterrupt())()
    assert exit.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        raising(ZeroDivisionError())()


def test_the_command_keeps_its_arguments_result_and_docstring():
    @exit_cleanly
    def main(a: int, *, b: int) -> int:
        """Add."""
        return a + b

    assert main(1, b=2) == 3
    assert main.__doc__ == "Add."


def test_a_process_shows_no_traceback():
    script = "from lab.errors import *\n@exit_cleanly\ndef main(): raise RunError('in use')\nmain()"
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "error: in use\n")


def test_an_interrupt_tells_what_it_was_told(capsys):
    interrupt = KeyboardInterrupt()
    interrupt.add_note("the same command with resume=true continues the run")
    with pytest.raises(SystemExit):
        raising(interrupt)()
    assert capsys.readouterr().err == "interrupted; the same command with resume=true continues the run\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "a/b"), "error: a/b cannot be written: No space left"),
        (OSError(errno.EROFS, "Read-only file system", "a/b"), "error: a/b cannot be written: Read-only"),
        (MemoryError(), "error: there is not enough memory"),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you\ntried to allocate"), "error: there is not enough"),
    ],
)
def test_what_the_machine_lacks_is_one_line(error, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        raising(error)()
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(said)
    assert told.count("\n") == 1


def test_a_file_that_is_not_there_is_a_bug_like_any_other():
    with pytest.raises(FileNotFoundError):
        raising(FileNotFoundError(errno.ENOENT, "No such file", "a/b"))()


def test_output_that_nobody_reads_any_more_is_no_bug():
    command = f"{sys.executable} -m lab.finetune --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("141\n", "")
