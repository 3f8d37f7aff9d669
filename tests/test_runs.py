import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lab.runs
from lab.errors import RunError
from lab.runs import Run, labels

CONFIG = "name: x\nresume: false\ntraining:\n  max_steps: 5\n  lr: 1.0e-04\n"

shared_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
records = st.lists(st.dictionaries(st.text(), values, max_size=3), max_size=4)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "checkpoints" / "x"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# Starting


def test_a_new_run_says_what_it_is(path):
    run = Run.open(path, CONFIG)
    assert sorted(tree(path)) == [".lock", "command.txt", "config.yaml", "environment.json", "status"]
    assert run.config == CONFIG
    assert run.status == "running"
    assert "python" in (path / "command.txt").read_text()
    environment = run.read_json("environment")
    assert environment["python"] == sys.version.split()[0]
    assert environment["cpu_count"] == os.cpu_count()
    assert environment["packages"]["pydantic"].startswith("2.")
    assert {"platform", "commit", "dirty"} < set(environment)


def test_nothing_but_the_run_is_left_beside_it(path):
    Run.open(path, CONFIG)
    Run.open(path, CONFIG, overwrite=True)
    assert os.listdir(path.parent) == ["x"]


def test_a_name_in_use_names_both_ways_out(path):
    Run.open(path, CONFIG)
    with pytest.raises(RunError, match=r"resume=true .* overwrite=true"):
        Run.open(path, CONFIG)


def test_an_empty_directory_is_free(path):
    path.mkdir(parents=True)
    assert Run.open(path, CONFIG).status == "running"


def test_a_start_that_fails_leaves_nothing(path, monkeypatch):
    monkeypatch.setattr(lab.runs, "_environment", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Run.open(path, CONFIG)
    assert os.listdir(path.parent) == []


def test_an_overwrite_that_fails_leaves_the_old_run(path, monkeypatch):
    Run.open(path, CONFIG).append("metrics", [{"step": 1}])
    before = tree(path)
    monkeypatch.setattr(lab.runs, "_environment", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Run.open(path, CONFIG, overwrite=True)
    assert tree(path) == before
    assert os.listdir(path.parent) == ["x"]


def test_an_overwrite_that_cannot_move_in_puts_the_old_run_back(path, monkeypatch):
    Run.open(path, CONFIG).append("metrics", [{"step": 1}])
    before = tree(path)
    rename = Path.rename

    def refuse_the_new(source: Path, target: Path) -> Path:
        if target == path and not source.name.endswith(".old"):
            raise OSError(28, "No space left on device")
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", refuse_the_new)
    with pytest.raises(RunError, match="No space left on device"):
        Run.open(path, CONFIG, overwrite=True)
    assert tree(path) == before
    assert os.listdir(path.parent) == ["x"]


def test_overwriting_starts_anew(path):
    Run.open(path, CONFIG).append("metrics", [{"step": 1}])
    run = Run.open(path, "name: y\n", overwrite=True)
    assert run.read("metrics") == []
    assert run.config == "name: y\n"


@pytest.mark.parametrize("option", ["resume", "overwrite"])
def test_a_stranger_s_folder_is_left_alone(path, option):
    path.mkdir(parents=True)
    (path / "config.yaml").write_text(CONFIG)
    (path / "thesis.tex").write_text("years of work")
    before = tree(path)
    with pytest.raises(RunError, match="is not a run directory"):
        Run.open(path, CONFIG, **{option: True})
    assert tree(path) == before


def test_a_copy_without_its_status_is_refused_with_what_mends_it(path):
    with Run.open(path, CONFIG):
        pass
    (path / "status").unlink()
    with pytest.raises(RunError, match=r"\(no status\), so it is left alone; a copy of a run needs its status file"):
        Run.open(path, CONFIG, resume=True)
    with pytest.raises(RunError, match=r"not a finished run \(no status file\); a copy of one needs this file too"):
        Run(path).check_finished()


@pytest.mark.parametrize("option", ["resume", "overwrite"])
def test_a_stranger_s_file_is_left_alone(path, option):
    path.parent.mkdir()
    path.write_text("years of work")
    with pytest.raises(RunError, match="is not a run directory"):
        Run.open(path, CONFIG, **{option: True})
    with pytest.raises(RunError, match="is in use"):
        Run.open(path, CONFIG)
    assert path.read_text() == "years of work"


def test_a_link_to_a_run_is_followed(path, tmp_path):
    Run.open(tmp_path / "disk" / "x", CONFIG)
    path.parent.mkdir()
    path.symlink_to(tmp_path / "disk" / "x")
    Run.open(path, "name: y\n", overwrite=True)
    assert path.is_symlink()
    assert Run(tmp_path / "disk" / "x").config == "name: y\n"


def test_the_second_of_two_processes_that_start_one_run_is_refused(path):
    Run.open(path, CONFIG).append("metrics", [{"step": 1}])
    with pytest.raises(OSError, match="not empty"):
        lab.runs._create(path, CONFIG, replace=False)
    assert Run(path).read("metrics") == [{"step": 1}]


def test_a_place_that_cannot_be_written_is_a_run_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"Not a directory|File exists"):
        Run.open(tmp_path / "file" / "x", CONFIG)


def test_the_environment_learns_the_device_later(path):
    run = Run.open(path, CONFIG)
    run.record_environment(device="cpu")
    assert run.read_json("environment")["device"] == "cpu"
    assert "python" in run.read_json("environment")


def test_without_git_the_commit_is_unknown(path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    environment = Run.open(path, CONFIG).read_json("environment")
    assert (environment["commit"], environment["dirty"]) == (None, None)


# Resuming


def test_resuming_where_nothing_is_starts(path):
    assert Run.open(path, CONFIG, resume=True).status == "running"


def test_resuming_keeps_the_records_and_the_first_config(path):
    with Run.open(path, CONFIG) as run:
        run.append("metrics", [{"step": 1}])
    run = Run.open(path, CONFIG.replace("resume: false", "resume: true"), resume=True)
    assert run.read("metrics") == [{"step": 1}]
    assert run.config == CONFIG
    assert run.status == "running"
    assert len((path / "command.txt").read_text().splitlines()) == 2


def test_a_finished_run_may_be_resumed(path):
    with Run.open(path, CONFIG):
        pass
    assert Run.open(path, CONFIG, resume=True).status == "running"


def test_resuming_with_another_config_names_the_keys_that_differ(path):
    Run.open(path, CONFIG)
    other = "name: x\nresume: true\noverwrite: false\ntraining:\n  max_steps: 6\nseed: 1\n"
    before = tree(path)
    with pytest.raises(RunError) as error:
        Run.open(path, other, resume=True)
    assert str(error.value) == (
        f"{path}: cannot resume with another config: training.max_steps was 5, is 6; "
        "training.lr was 0.0001, is not set; seed was not set, is 1; the learning rate schedule depends on "
        "max_steps, so more steps are a different training; give another name to keep both, or overwrite=true to start "
        "over"
    )
    assert tree(path) == before


def test_only_the_first_differing_keys_are_named(path):
    Run.open(path, "{a: 1, b: 1, c: 1, d: 1, e: 1}")
    with pytest.raises(RunError, match=r"a was 1, is 2; b was 1, is 2; c was 1, is 2; and 2 more; give another name"):
        Run.open(path, "{a: 2, b: 2, c: 2, d: 2, e: 2}", resume=True)


def test_a_config_that_only_moved_its_keys_is_the_same(path):
    Run.open(path, "a: 1\nb: .nan\n")
    Run.open(path, "# later\nb: .nan\na: 1\n", resume=True)


def test_an_earlier_config_may_be_renewed_before_it_is_compared(path):
    Run.open(path, "a: 1\n")
    with pytest.raises(RunError, match="added was not set, is 3"):
        Run.open(path, "a: 1\nadded: 3\n", resume=True)
    Run.open(path, "a: 1\nadded: 3\n", resume=True, renew=lambda text: f"{text}added: 3\n")
    with pytest.raises(RunError, match="added was 3, is 4"):
        Run.open(path, "a: 1\nadded: 4\n", resume=True, renew=lambda text: f"{text}added: 3\n")


def test_resume_and_overwrite_exclude_each_other(path):
    with pytest.raises(RunError, match="cannot be combined"):
        Run.open(path, CONFIG, resume=True, overwrite=True)


# Ending


def test_a_run_that_ends_is_finished(path):
    with Run.open(path, CONFIG) as run:
        assert run.status == "running"
    assert run.status == "finished"


def test_a_run_that_raises_is_failed_and_the_error_goes_on(path):
    with pytest.raises(ZeroDivisionError), Run.open(path, CONFIG):
        raise ZeroDivisionError
    assert Run(path).status == "failed"


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_a_run_that_is_interrupted_still_says_running(path, interrupt):
    with pytest.raises(interrupt), Run.open(path, CONFIG):
        raise interrupt
    assert Run(path).status == "running"


def test_a_killed_run_is_resumed_with_its_whole_records(path):
    script = (
        "import sys, itertools; from pathlib import Path; from lab.runs import Run\n"
        f"run = Run.open(Path(sys.argv[1]), {CONFIG!r}); print('ready', flush=True)\n"
        "for step in itertools.count(): run.append('metrics', [{'step': step, 'text': 'x' * 10_000}])"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    while len(Run(path).read("metrics")) < 3:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    run = Run.open(path, CONFIG, resume=True)
    count = len(run.read("metrics"))
    run.append("metrics", [{"step": count}])
    assert [record["step"] for record in run.read("metrics")] == list(range(count + 1))


# Records


@pytest.mark.slow
@shared_folder
@given(first=records, second=records)
def test_what_is_appended_is_read_back(tmp_path, first, second):
    run = Run(tmp_path)
    run.rewrite("samples", first)
    run.append("samples", second)
    assert run.read("samples") == first + second


def test_records_that_were_never_written_are_none(path):
    assert Run.open(path, CONFIG).read("metrics") == []


@pytest.mark.slow
@settings(parent=shared_folder, max_examples=50)
@given(records=records.filter(bool), data=st.data())
def test_cutting_a_file_at_any_byte_never_loses_a_whole_earlier_line(tmp_path, records, data):
    path = tmp_path / "x"
    run = Run(path) if path.exists() else Run.open(path, CONFIG)
    run.rewrite("metrics", records)
    file = path / "metrics.jsonl"
    whole = file.read_bytes()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    file.write_bytes(cut)
    kept = records[: cut.count(b"\n")]
    assert run.read("metrics") == kept
    assert file.read_bytes() == cut, "to look at a run changes nothing"
    resumed = Run.open(path, CONFIG, resume=True)
    resumed.append("metrics", records[len(kept) :])
    assert file.read_bytes() == whole


def test_a_last_line_that_is_not_json_is_cut_on_resuming(path):
    run = Run.open(path, CONFIG)
    (path / "metrics.jsonl").write_bytes(b'{"step": 1}\n\x00\x00\n')
    assert run.read("metrics") == [{"step": 1}]
    Run.open(path, CONFIG, resume=True)
    assert (path / "metrics.jsonl").read_bytes() == b'{"step": 1}\n'


def test_a_line_in_the_middle_that_is_not_json_is_named(path):
    run = Run.open(path, CONFIG)
    (path / "metrics.jsonl").write_text('{"step": 1}\n{"step": \n{"step": 3}\n')
    with pytest.raises(RunError, match=r"metrics\.jsonl:2: not JSON: "):
        run.read("metrics")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused_before_anything_is_written(path, number):
    run = Run.open(path, CONFIG)
    before = tree(path)
    with pytest.raises(ValueError, match="not JSON compliant"):
        run.append("metrics", [{"loss": 1.0}, {"loss": number}])
    with pytest.raises(ValueError, match="not JSON compliant"):
        run.write_json("summary", {"loss": number})
    assert tree(path) == before


def test_half_a_surrogate_pair_is_written_and_read(path):
    run = Run.open(path, CONFIG)
    run.append("samples", [{"text": "\ud83d"}])
    assert run.read("samples") == [{"text": "\ud83d"}]


def test_rewriting_replaces_all_records(path):
    run = Run.open(path, CONFIG)
    run.append("metrics", [{"step": 1}, {"step": 2}])
    run.rewrite("metrics", [record for record in run.read("metrics") if record["step"] < 2])
    assert run.read("metrics") == [{"step": 1}]


def test_a_replacement_that_fails_leaves_the_old_file(path, monkeypatch):
    run = Run.open(path, CONFIG)
    run.rewrite("metrics", [{"step": 1}])
    before = tree(path)

    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    for write in (run.rewrite, run.append):
        with pytest.raises(RunError, match=r"metrics.jsonl: No space left on device"):
            write("metrics", [{"step": 2}])
    monkeypatch.undo()
    assert tree(path)["config.yaml"] == before["config.yaml"]
    assert run.read("metrics")[:1] == [{"step": 1}]


@pytest.mark.parametrize(
    ("given", "how"),
    [
        ({}, " with resume=true"),
        ({"resume": True}, ""),
        ({"overwrite": True}, " with resume=true (and without overwrite=true)"),
    ],
)
def test_an_interrupt_is_told_how_the_run_goes_on(path, given, how):
    with pytest.raises(KeyboardInterrupt) as raised, Run.open(path, CONFIG, **given):
        raise KeyboardInterrupt
    assert raised.value.__notes__ == [f"the same command{how} continues the run"]


def test_what_a_disk_refuses_is_the_error_that_is_told(path, monkeypatch):
    """The error is not that the status could not be written either."""

    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    run = Run.open(path, CONFIG)
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RunError, match=r"metrics.jsonl: No space left"), run:
        run.append("metrics", [{"step": 1}])


def test_damaged_records_are_found_before_a_run_is_taken_up(path):
    run = Run.open(path, CONFIG)
    run.append("samples", [{"index": 0}])
    run.check_records()
    (path / "samples.jsonl").write_text("{\n{}\n")
    with pytest.raises(RunError, match=r"samples.jsonl:1: not JSON"):
        run.check_records()


def test_a_place_that_cannot_be_written_to_is_found_and_nothing_is_left(tmp_path):
    (tmp_path / "file").touch()
    Run.check_writable(tmp_path / "new" / "deeper")
    assert os.listdir(tmp_path) == ["file"]
    with pytest.raises(RunError, match="Not a directory"):
        Run.check_writable(tmp_path / "file" / "deeper")
    with pytest.raises(RunError):
        Run.check_writable(Path("/proc/nowhere"))


# Results


def test_results_are_indented_and_keep_their_order(path):
    run = Run.open(path, CONFIG)
    run.write_json("summary", {"b": 1, "a": [0.5]})
    assert (path / "summary.json").read_text() == '{\n  "b": 1,\n  "a": [\n    0.5\n  ]\n}\n'
    assert run.read_json("summary") == {"a": [0.5], "b": 1}


def test_results_that_are_not_there_or_not_json_are_run_errors(path):
    run = Run.open(path, CONFIG)
    with pytest.raises(RunError, match=r"summary\.json: No such file"):
        run.read_json("summary")
    run.write_text("summary.json", "{")
    with pytest.raises(RunError, match=r"summary\.json: not JSON"):
        run.read_json("summary")


def test_to_look_at_a_run_creates_nothing(path):
    Run.open(path, CONFIG)
    run = Run(path)
    assert not run.figures.exists()
    assert not run.model.exists()
    assert json.loads((path / "environment.json").read_text()) == run.read_json("environment")


@pytest.mark.parametrize("how", ["resume", "overwrite"])
def test_a_run_that_another_process_writes_is_left_to_it(path, how):
    code = f"""
import sys, time
from pathlib import Path
from lab.runs import Run
run = Run.open(Path({str(path)!r}), {CONFIG!r})
print("ready", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(RunError, match="another process is writing it"):
            Run.open(path, CONFIG, **{how: True})
        other.stdin.close()
    Run.open(path, CONFIG, **{how: True})


def test_a_label_has_as_many_folders_as_tell_a_run_from_all_others():
    places = [Path("a/s1/run"), Path("b/s1/run"), Path("c/s2/run"), Path("other")]
    assert list(labels(places).values()) == ["a/s1/run", "b/s1/run", "s2/run", "other"]
    assert labels([Path("run"), Path("a/run")]) == {Path("run"): "run", Path("a/run"): "a/run"}
    assert labels([]) == {}


def test_runs_may_be_called_by_other_names_if_there_is_a_different_one_for_each():
    assert labels([Path("a"), Path("b")], ["plain", "reversed"]) == {Path("a"): "plain", Path("b"): "reversed"}
    for names in (["plain"], ["plain", "plain"], ["plain", "reversed", "padded"]):
        with pytest.raises(RunError, match="should be 2 different names, one for each run"):
            labels([Path("a"), Path("b")], names)


def test_a_run_says_which_command_made_it_and_one_of_an_earlier_version_tells_it_by_its_config(tmp_path):
    with Run.open(tmp_path / "earlier", "name: x\nbenchmark: {kind: nupa}\n") as earlier:
        pass
    assert earlier.command == "evaluate"
    earlier.record_environment(command="cost")
    assert Run(earlier.path).command == "cost"
    with Run.open(tmp_path / "other", "name: x\n") as other:
        pass
    assert other.command is None
