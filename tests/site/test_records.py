import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.config.commands import command_of
from lab.errors import RunError
from lab.site import overview, pages, run_page, samples, series, training
from lab.site.gather import gather
from lab.site.scripts import as_json
from lab.sweeping.config import COMMANDS, SweepConfig
from tests.site.site_runs import NUPA, SCRATCH, estimate, nupa_part, nupa_sample, write_run


def index(site) -> str:
    """The overview as the page loads it."""
    return "".join(path.read_text() for path in site.glob("*/index/*.js"))


def test_runs_are_found_below_a_folder_and_named_once_whatever_state_they_are_in(runs):
    found = {record.name: record for record in gather([runs, runs / "first"])}
    assert sorted(found) == ["damaged", "first", "old", "probe", "scratch", "second", "unfinished"]
    assert (found["scratch"].command, found["scratch"].model) == ("pretrain", "0.2M rope")
    assert (found["unfinished"].status, found["unfinished"].notes) == ("running", [])
    assert (found["damaged"].command, found["damaged"].status) == ("unknown", "damaged")
    assert [note.split(":")[0] for note in found["damaged"].notes] == ["config.yaml", "summary.json"]


@pytest.mark.parametrize("file", ["config.yaml", "summary.json", "status"])
def test_a_run_of_which_a_file_is_damaged_is_damaged_whatever_its_status_says(file, tmp_path):
    run = write_run(tmp_path, "run", NUPA, summary={"version": 1})
    (run / file).write_bytes(b"\xff")
    (record,) = gather([tmp_path])
    assert record.status == "damaged"
    assert [note.split(":")[0] for note in record.notes] == [file]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("benchmark: nupa\n", "config.yaml: not a config of the lab (benchmark should be a mapping)"),
        ("training: fast\n", "config.yaml: not a config of the lab (training should be a mapping)"),
        ("subject: a\ninstruments: 5\n", "config.yaml: not a config of the lab (instruments should be a list)"),
        ("2024-01-01: x\n", "config.yaml: damaged (TypeError: keys must be str"),
        ("data: {2024-01-01: x}\n", "config.yaml: damaged (TypeError: keys must be str"),
    ],
)
def test_a_config_of_another_program_is_noted_and_never_ends_the_report(config, said, tmp_path):
    metrics, samples = [{"step": 1, "loss": 2.0}], [nupa_sample(0, "1", "1", " 1")]
    foreign = write_run(tmp_path, "foreign", config, "running", metrics=metrics, samples=samples)
    (foreign / "page.html").write_text("<!doctype html><title>probe</title>")
    write_run(tmp_path, "own", NUPA)
    records = gather([tmp_path])
    page = pages.write(records, tmp_path / "site").parent
    assert [record.status for record in records] == ["damaged", "finished"]
    assert [len(record.notes) for record in records] == [1, 0]
    assert records[0].notes[0].startswith(said)
    assert "damaged" in index(page)


def test_a_summary_of_another_shape_is_noted_and_never_ends_the_report(tmp_path):
    write_run(tmp_path, "adder", "group: {seeds: 1}\n", summary={"exact_match": {"value": 1}})
    (record,) = gather([tmp_path])
    page = pages.write([record], tmp_path / "site").parent
    (note,) = record.notes
    assert note.startswith("summary.json: damaged (TypeError")
    assert "summary.json: damaged (TypeError" in index(page)


def test_the_files_that_a_page_loads_lie_in_a_folder_of_its_own_version(tmp_path, runs):
    versions = []
    for _ in range(2):
        pages.write(gather([runs / "first"]), tmp_path / "site")
        (version,) = [path.name for path in (tmp_path / "site").iterdir() if path.is_dir()]
        assert (tmp_path / "site" / "written.js").read_text() == f'receive("written","{version}")\n'
        assert (tmp_path / "site" / version / "runs" / "0" / "run.js").is_file()
        versions.append(version)
    assert versions[0] != versions[1]


def test_a_run_whose_process_was_killed_is_interrupted_and_one_that_is_held_is_running(tmp_path):
    hold = "import sys; from pathlib import Path; from lab.runs import Run; run = Run.open(Path(sys.argv[1]), 'x: 1')\n"
    hold += "print('held', flush=True); input()"
    command = [sys.executable, "-c", hold, str(tmp_path / "run")]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        assert [record.status for record in gather([tmp_path])] == ["running"]
        holder.kill()
    assert [record.status for record in gather([tmp_path])] == ["interrupted"]


def test_the_command_of_a_run_that_did_not_record_it_follows_from_its_config():
    for name, command in COMMANDS.items():
        assert command_of(command.schema.model_fields) == name
    assert command_of(SweepConfig.model_fields) == "sweep"


def test_a_recorded_command_comes_before_what_the_config_looks_like(tmp_path):
    run = write_run(tmp_path, "run", NUPA)
    (run / "environment.json").write_text('{"command": "probe"}')
    assert [record.command for record in gather([tmp_path])] == ["probe"]


def test_a_sweep_is_called_one_and_names_its_command_and_config(tmp_path):
    write_run(tmp_path, "grid", "command: pretrain\nconfig: ../scratch_add.yaml\nseeds: [0, 1]\n")
    (record,) = gather([tmp_path])
    assert (record.command, record.model) == ("sweep", "pretrain scratch_add")


def test_runs_of_the_same_name_go_by_their_folders_too(tmp_path, runs):
    for place in ("a", "b"):
        (tmp_path / place / "run").mkdir(parents=True)
        (tmp_path / place / "run" / "status").write_text("running\n")
    assert [record.name for record in gather([tmp_path])] == ["a/run", "b/run"]


def test_links_to_runs_are_followed_and_circles_of_links_end(tmp_path, runs):
    (tmp_path / "elsewhere").symlink_to(runs / "first")
    (tmp_path / "above").symlink_to(tmp_path)
    assert [record.name for record in gather([tmp_path])] == ["elsewhere"]


def test_a_folder_that_is_not_there_or_holds_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="no such folder"):
        gather([tmp_path / "absent"])
    with pytest.raises(RunError, match="no run directory there"):
        gather([tmp_path])


def test_a_summary_becomes_cells_and_another_version_is_said_to_be_one(runs):
    found = {record.name: record for record in gather([runs])}
    (first,) = series.of_record(found["first"])
    # strict and loose agree, so one triple stands for both
    assert first.ranges["add_integer"]["S"] == [[[0.0833, 0.0287, 0.2183, 36]] * 2 + [[0.5, 0.1, 1.5, 36]]]
    assert list(first.lengths["add_integer"]) == ["3", "4", "10"]
    (scratch,) = series.of_record(found["scratch"])
    assert (scratch.trained, scratch.ranges) == ([1, 4], {})
    assert series.of_record(found["probe"]) == []
    with pytest.raises(RunError, match="another version"):
        series.of_record(found["old"])


def test_a_cell_has_a_place_for_each_reading_that_was_made(tmp_path):
    right, wrong = nupa_part(36, 36, (3, 4))["strict"], nupa_part(0, 36, (3, 4))["strict"]
    part = {"strict": wrong, "loose": wrong, "released": right}
    summary = {"version": 1, "nupa": {"add_integer": {"ranges": {"S": part}, "domains": {}, "lengths": {}}}}
    write_run(tmp_path, "read", NUPA, summary=summary)
    ((found,),) = map(series.of_record, gather([tmp_path]))
    (cell,) = found.ranges["add_integer"].values()
    assert found.readings == ["strict", "loose", "released"]
    assert [place[0][0] if place else None for place in cell] == [0, 0, None, 1]


def test_what_was_not_measured_is_none_and_never_zero():
    assert series.estimate(None) is None
    assert series.estimate({"value": math.nan, "low": 0, "high": 1, "n": 3}) is None
    assert series.estimate({"value": 0.0, "low": 0.0, "high": math.inf, "n": 3}) == [0, 0, None, 3]


def test_the_papers_figures_stand_beside_ours_without_an_interval():
    found = series.published()
    assert found
    assert all("paper, Table" in one.label for one in found)
    cells = [cell for one in found for ranges in one.ranges.values() for cell in ranges.values()]
    assert all(triple is None or triple[1:] == [None] * 3 for cell in cells for triple in cell[0])


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("12", "12", "correct"),
        (None, "12", "parse_error"),
        ("22", "12", "carry_1d"),
        ("99999", "12345", "value_nd"),
        ("012", "12", "other_form"),
    ],
)
def test_an_answer_ends_in_one_of_the_outcomes(text, answer, expected):
    sample = {"task_key": "add_integer", "length": 2, "answer": answer, "given": text, "exact_match": text == answer}
    assert samples.outcome(sample) == expected
    assert samples.outcome({**sample, "api_error": "500"}) == "api_error"
    assert samples.outcome({**sample, "outcome": "sub_1d"}) == "sub_1d"


def received(path) -> object:
    name, _, value = path.read_text().removeprefix("receive(").removesuffix(")\n").partition(",")
    assert json.loads(name) == path.with_suffix("").relative_to(path.parents[1]).as_posix()
    return json.loads(value)


def test_the_directory_of_samples_leads_to_every_one_of_them(tmp_path):
    records = [
        {"index": i, "int1": "1", "int2": "2", "answer": "3", "digits": 30 - i % 3, "text": "x" * 9000, "prompt": "q"}
        for i in range(450)
    ]
    said = samples.write("set", [*records, {"index": "?"}, 7], tmp_path, "two_integers")
    assert (said.n, len(said.problems), said.notes) == (450, 16, ["2 lines without a sample"])
    assert said.outcomes == {"two_integers": {n: {"parse_error": 150} for n in (28, 29, 30)}}
    directory = received(tmp_path / "set" / "directory.js")
    assert directory["groups"] == [["two_integers", length, 150] for length in (28, 29, 30)]
    chunks = [received(tmp_path / "set" / f"{number}.js") for number in range(len(directory["starts"]))]
    assert [sum(map(len, chunks[:n])) for n in range(len(chunks))] == directory["starts"]
    assert all((tmp_path / "set" / f"{n}.js").stat().st_size < 2 * samples.CHUNK_CHARACTERS for n in range(len(chunks)))
    assert len(directory["outcomes"]) == sum(map(len, chunks)) == 450
    assert [one["index"] for chunk in chunks for one in chunk] == sorted(range(450), key=lambda i: (30 - i % 3, i))


def test_a_question_of_ones_own_is_a_sample_and_one_without_an_answer_is_counted(tmp_path):
    asked = {"index": 0, "asked": "Which year is MMXXIV?", "answer": "2024", "text": "2024", "given": "2024"}
    records = [
        {**asked, "success": True},
        {**asked, "index": 1, "asked": "Which year is MCMXCIX?", "given": "1998", "success": False},
        {**asked, "index": 2, "asked": "When?", "api_error": "HTTP 400"},
    ]
    said = samples.write("set", records, tmp_path, "own_questions")
    assert (said.n, said.notes) == (3, ["1 of 3 questions have no answer"])
    assert said.outcomes == {"own_questions": {4: {"correct": 1, "wrong": 1, "api_error": 1}}}
    other = [{**record, "asked": "Something else?"} for record in records]
    assert samples.write("other", other, tmp_path, "own_questions").problems != said.problems


def test_no_samples_are_none(tmp_path):
    assert samples.write("set", [], tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@given(st.text())
def test_no_text_ends_the_script_that_it_stands_in(text):
    written = as_json({"text": text, "number": math.nan})
    assert "<" not in written
    assert written.isascii()
    assert json.loads(written)["text"] == text


def test_curves_show_the_best_seed_and_are_thinned_to_what_a_chart_can_show():
    rows = [
        {"step": step, "loss": 1 / step, "valid_loss": [3.0, 2.0], "valid_accuracy": [0.1, 0.4]}
        for step in range(1, 1001)
    ]
    found = training.curves(rows)
    assert found["valid_loss"][0][1] == 2.0
    assert found["valid_accuracy"][0][1] == 0.4
    assert len(found["loss"]) <= training.POINTS
    assert found["loss"][-1] == [1000, 0.001]
    assert "grad_norm" not in found


def test_what_cannot_be_seen_is_written_as_its_code():
    assert pages.plain("a‮b\x00\ud800é\n") == "a\\u202eb\\u0000\\ud800é\n"


def curve(right: dict[int, int], n: int = 20) -> dict:
    lengths = {str(length): {"exact_match": estimate(count, n)} for length, count in right.items()}
    return {"version": 1, "lengths": {"add_integer": lengths}}


def rows_of(folder) -> list[tuple[overview.Row, list[series.Series]]]:
    found = [(record, series.of_record(record)) for record in gather([folder])]
    return [(overview.row(number, record, one), one) for number, (record, one) in enumerate(found)]


def test_a_score_is_the_share_of_all_problems_of_a_part_of_the_run(tmp_path):
    write_run(tmp_path, "a", SCRATCH, summary=curve({2: 20, 4: 10, 8: 5}), training_times=[{"seconds": 90}] * 2)
    add = {"ranges": {"S": nupa_part(9, 36, (3, 4))}, "domains": {}, "lengths": {}}
    tuned = {"version": 1, "before": {"add_integer": add}, "after": {"add_integer": add, "max_float": add}}
    write_run(tmp_path, "b", "adapter: {rank: 8}\n", summary=tuned)
    (scratch, _), (finetuned, _) = rows_of(tmp_path)
    assert {label: (found.value, found.n) for label, found in scratch.scores.items()} == {
        "trained lengths": (30 / 40, 40),
        "beyond": (5 / 20, 20),
    }
    assert [(label, found.n) for label, found in finetuned.scores.items()] == [("after", 72), ("before", 36)]
    assert (scratch.minutes, finetuned.minutes) == (3, None)


def test_a_run_that_has_not_ended_has_no_time_at_which_it_ended(tmp_path):
    for name, status in (("done", "finished"), ("failing", "failed"), ("going", "running")):
        write_run(tmp_path, name, SCRATCH, status)
    assert [bool(row.ended) for row, _ in rows_of(tmp_path)] == [True, True, False]
    (going,) = gather([tmp_path / "going"])
    going.status = "interrupted"
    assert overview.row(0, going, []).ended == ""


def test_seeds_of_a_setting_are_one_row_with_their_mean_and_other_settings_are_rows_of_their_own(tmp_path):
    for seed, right in ((0, 20), (1, 10)):
        write_run(tmp_path, f"grid_rope_{seed}", f"seed: {seed}\n{SCRATCH}", summary=curve({2: right}))
    write_run(tmp_path, "other", f"seed: 2\n{SCRATCH.replace('rope', 'nope')}", summary=curve({2: 1}))
    folds = overview.fold([row for row, _ in rows_of(tmp_path)])
    assert [(fold.name, len(fold.rows)) for fold in folds] == [("grid_rope", 2), ("other", 1)]
    mean = folds[0].scores["trained lengths"]
    assert mean.value == 0.75
    assert (mean.low, mean.high) == (0, 1)  # Student's interval over two seeds holds nearly everything


def test_runs_of_the_same_seed_are_never_folded(tmp_path):
    for name in ("a", "b"):
        write_run(tmp_path, name, f"seed: 0\n{SCRATCH}")
    assert [fold.name for fold in overview.fold([row for row, _ in rows_of(tmp_path)])] == ["a", "b"]


def test_a_run_page_has_tables_figures_and_the_end_of_a_failed_runs_log(tmp_path):
    run = write_run(tmp_path, "grid_rope_0", SCRATCH, "failed")
    (run / "table.md").write_text("| a |\n|---|\n| <b>1</b> ![x](http://elsewhere/x.png) |\n")
    (run / "figures").mkdir()
    (run / "figures" / "lengths.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "grid" / "logs").mkdir(parents=True)
    (tmp_path / "grid" / "logs" / "grid_rope_0.log").write_text("$ command\nthe loss is not finite\n")
    (record,) = gather([tmp_path])
    said = run_page.of("runs/0", record, {}, tmp_path / "site")
    assert said["error"].splitlines()[-1].strip() == "the loss is not finite"
    assert said["figures"] == ["runs/0/figures/lengths.png"]
    assert (tmp_path / "site" / "runs" / "0" / "figures" / "lengths.png").is_file()
    ((name, html),) = said["tables"]
    assert name == "table.md"
    assert "<table>" in html
    assert "<b>" not in html
    assert "<img" not in html
