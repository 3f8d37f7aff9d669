"""Files that users give: whatever is wrong with one is told in one line, with its name, and nothing is computed."""

import json

import pytest
import yaml

from lab.benchmarks.nupa.files import read_published
from lab.benchmarks.own_questions import OwnQuestions
from lab.benchmarks.results import VERSION, Sample, read_samples
from lab.config.evaluation import OwnQuestionsConfig
from lab.cost import main as cost
from lab.engines.engine import Completion
from lab.errors import LabError, RunError, TaskError
from lab.evaluate import main as evaluate
from lab.numbers.sampling import Problem
from lab.runs import Run


def one_line(use, begins, kind=TaskError):
    """`use` should raise an error of one line that has these words."""
    with pytest.raises(kind) as caught:
        use()
    assert isinstance(caught.value, LabError)
    assert begins in str(caught.value)
    assert "\n" not in str(caught.value)


NO_TEXT = {
    "latin-1": "é".encode("latin-1"),
    "utf-16": json.dumps({"add_Integer_Integer_Integer": {}}).encode("utf-16"),
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "a number": b"7",
    "null": b"null",
    "a list": b"[1]",
    "zeros": bytes(100),
}
WRONG = [None, [1], {}, 1.5, True]


@pytest.mark.parametrize("name", [*NO_TEXT, "missing", "folder"])
def test_a_file_of_problems_that_cannot_be_read_is_one_line(tmp_path, name):
    path = tmp_path / "x.json"
    if name == "folder":
        path.mkdir()
    elif name != "missing":
        path.write_bytes(NO_TEXT[name])
    one_line(lambda: read_published(path), str(path))


@pytest.mark.parametrize("texts", [[1], [None], [{}], 5, "text"])
def test_texts_of_another_type_are_one_line(tmp_path, texts):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"add_Integer_Integer_Integer": {"3": texts}}))
    one_line(lambda: read_published(path), f"{path}: does not have the layout")


SAMPLE = Sample(
    0, Problem("add", "integer", "1", "2", "3", 1), "1 + 2 =", Completion(" 3", 5, 2, 0.5, "stop")
).to_json()
SAMPLE |= {"strict": {"given": "3", "exact_match": True, "digit_match": 1.0, "dlength": 0, "error": None}}
SUM = {"index": 0, "model": "", "int1": "12", "int2": "30", "answer": "42", "digits": 2, "prompt": "?"}
SUM |= {**Completion("42", 5, 2, 0.5, "stop")._asdict(), "strict": {"given": "42", "success": True}}


@pytest.mark.parametrize("line", [b"\xff\n", b"[1]\n", b"7\n", b'"text"\n', b"null\n", b"{}\n", b"[" * 100_000 + b"\n"])
def test_a_damaged_line_of_samples_is_one_line_with_its_number(tmp_path, line):
    path = tmp_path / "samples.jsonl"
    path.write_bytes(json.dumps(SAMPLE).encode() + b"\n" + line + json.dumps(SAMPLE).encode() + b"\n")
    one_line(lambda: read_samples(Run(tmp_path)), f"{path}:2: not ", RunError)


TYPED = ("task", "a", "b", "answer", "length", "index", *Completion._fields, "strict")


@pytest.mark.parametrize(
    ("record", "key"), [*((SAMPLE, key) for key in TYPED), (SUM, "int1"), (SUM, "strict"), (SUM, "text")]
)
@pytest.mark.parametrize("value", [[1], {}, {"given": 3}, {"given": "3", "exact_match": "no"}])
def test_a_sample_with_a_value_of_another_type_is_one_line(tmp_path, record, key, value):
    (tmp_path / "samples.jsonl").write_text(json.dumps(record | {key: value}) + "\n")
    one_line(lambda: read_samples(Run(tmp_path)), "samples.jsonl:1: not a sample: ", RunError)


@pytest.mark.parametrize("record", [SAMPLE, SUM])
def test_a_sample_that_lacks_something_says_what(tmp_path, record):
    for key in ("index", "prompt", "text", "seconds", "answer" if record is SAMPLE else "int2"):
        rest = {name: value for name, value in record.items() if name != key}
        (tmp_path / "samples.jsonl").write_text(json.dumps(rest) + "\n")
        one_line(lambda: read_samples(Run(tmp_path)), key, RunError)


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe",
        b"import nothing_of_this_name",
        b"raise SystemExit(0)",
        b"def questions(seed): raise SystemExit(0)",
        b"def questions(seed): raise RecursionError",
        b"def questions(seed): return 5",
        b"def questions(seed): return ['one', 'two']",
        b"def questions(seed): return [('1 + 1 =', 2)]",
        b"def questions(seed): return [('\\ud800', '2')]",
        b"def questions(): return [('1 + 1 =', '2')]",
        b"def questions(seed): return []",
        b"questions = 5",
        b"def questions(seed):",
        bytes(9),
    ],
)
def test_a_file_of_questions_that_cannot_be_used_is_one_line(tmp_path, text):
    (tmp_path / "own.py").write_bytes(text)
    one_line(lambda: OwnQuestions(OwnQuestionsConfig(file=tmp_path / "own.py"), 0), "own.py")


@pytest.mark.parametrize("read", ["raise SystemExit(0)", "return 5", "raise KeyError"])
def test_a_reading_that_fails_is_one_line(tmp_path, read):
    (tmp_path / "own.py").write_text(f"def questions(seed): return [('?', '2')]\ndef read(text): {read}")
    benchmark = OwnQuestions(OwnQuestionsConfig(file=tmp_path / "own.py"), 0)
    one_line(lambda: benchmark.score(0, Completion("2", 1, 1, 0.1, "stop")), "own.py: read('2') ")


def test_a_folder_or_nothing_is_no_file_of_questions(tmp_path):
    (tmp_path / "folder.py").mkdir()
    for name in ("folder.py", "missing.py", "x" * 300 + ".py"):
        one_line(lambda: OwnQuestions(OwnQuestionsConfig(file=tmp_path / name), 0), "should be a Python file")  # noqa: B023


EVALUATED = {"command": "evaluate", "engine": {"kind": "openai", "model": "x"}, "benchmark": {"kind": "nupa"}}
FINISHED = {"config.yaml": yaml.dump(EVALUATED), "status": "finished\n", "samples.jsonl": json.dumps(SAMPLE) + "\n"}
FINISHED["summary.json"] = json.dumps({"version": VERSION, "nupa": {}})


def refused(capsys, main, words):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    told = capsys.readouterr().err
    assert stopped.value.code == 2
    assert told.count("\n") == 1
    return told


@pytest.mark.parametrize("command", [cost, evaluate], ids=["cost", "evaluate"])
@pytest.mark.parametrize("file", FINISHED)
@pytest.mark.parametrize(
    "content", [b"\xff\xff\n\n", b"[" * 100_000 + b"\n\n", b"[1, 2]\n\n", b"x: 'y\n\n", bytes(9) + b"\n\n"]
)
def test_a_run_with_a_damaged_file_is_one_line(tmp_path, capsys, command, file, content):
    run = tmp_path / "run"
    run.mkdir()
    for name, text in FINISHED.items():
        (run / name).write_text(text)
    (run / file).write_bytes(content)
    if (command, file) == (cost, "summary.json"):  # it reads none
        return
    told = refused(capsys, command, [str(run), f"out={tmp_path / 'out'}"])
    assert str(run) in told


CONFIGS = [
    {"benchmark": "nupa"},
    {"engine": [1]},
    {"sampling": 5, "engine": 5},
    {"data": {"lengths": "long"}},
    {"data": 5},
]


@pytest.mark.parametrize("config", CONFIGS)
def test_a_run_with_a_config_of_something_else_is_one_line(tmp_path, capsys, config):
    run = tmp_path / "run"
    run.mkdir()
    for name, text in {**FINISHED, "config.yaml": yaml.dump(EVALUATED | config)}.items():
        (run / name).write_text(text)
    assert "config.yaml: not a config" in refused(capsys, cost, [str(run), f"out={tmp_path / 'out'}"])


def test_a_sample_of_an_unknown_task_is_one_line(tmp_path, capsys):
    run = tmp_path / "run"
    run.mkdir()
    for name, text in {**FINISHED, "samples.jsonl": json.dumps(SAMPLE | {"task": "ad"}) + "\n"}.items():
        (run / name).write_text(text)
    assert "samples.jsonl: sample 0: there is no task ad_integer" in refused(capsys, cost, [str(run)])
