"""A benchmark from a file of the user's own, through the same commands as those of the lab."""

import json

import pytest

from lab.benchmarks.own_questions import OwnQuestions
from lab.config.evaluation import OwnQuestionsConfig
from lab.engines.engine import Completion
from lab.errors import TaskError
from lab.evaluate import main

ROMAN = '''
"""Roman numerals."""
YEARS = {"MCMXCIX": "1999", "MMXXIV": "2024", "MDCLXVI": "1666"}

def questions(seed):
    for roman, year in YEARS.items():
        yield f"Which year is {roman}?", year

def read(text):
    digits = "".join(character for character in text if character.isdigit())
    return digits or None
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "roman.py"
    path.write_text(ROMAN)
    return path


@pytest.fixture
def arguments(toy_model, tmp_path, file):
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"name: mine\noutput: {tmp_path}\nengine: {{kind: local, model: {{name: {toy_model}, device: cpu}}}}\n"
        f"benchmark: {{kind: own_questions, file: {file}, setting: base, max_tokens: 4}}\n"
    )
    return [str(path)]


def answered(text: str) -> Completion:
    return Completion(text, 1, 1, 0.0, "stop")


def test_an_answer_is_read_as_the_file_says(file):
    benchmark = OwnQuestions(OwnQuestionsConfig(file=file), 0)
    assert len(benchmark) == 3
    given = [benchmark.score(1, answered(text)).readings[""] for text in ("It is 2024.", "2 024", "2025", "no idea")]
    assert [(one.given, one.exact_match) for one in given] == [
        ("2024", True),
        ("2024", True),
        ("2025", False),
        (None, False),
    ]


def test_without_a_reading_of_its_own_all_that_is_written_is_the_answer(file):
    file.write_text(ROMAN.partition("def read")[0])
    benchmark = OwnQuestions(OwnQuestionsConfig(file=file), 0)
    assert [benchmark.score(0, answered(text)).readings[""].exact_match for text in (" 1999\n", "1999.")] == [
        True,
        False,
    ]


def test_a_run_is_measured_resumed_and_compared_like_any_other(arguments, tmp_path, capsys):
    main(arguments)
    run = tmp_path / "mine"
    lines = (run / "samples.jsonl").read_text().splitlines()
    asked = [json.loads(line) for line in lines]
    assert sorted(one["asked"] for one in asked) == [
        f"Which year is {roman}?" for roman in ("MCMXCIX", "MDCLXVI", "MMXXIV")
    ]
    (run / "samples.jsonl").write_text(lines[0] + "\n")
    main([*arguments, "resume=true"])
    assert sorted((run / "samples.jsonl").read_text().splitlines()) != lines[:1]
    assert json.loads((run / "summary.json").read_text())["own_questions"]["asked"] == 3
    capsys.readouterr()
    out = f"out={tmp_path / 'comparison'}"
    main([str(run), str(run), out])
    main([*arguments, "name=other"])
    main([str(run), str(tmp_path / "other"), out])
    told = capsys.readouterr().out
    assert "right, % (95 % interval), n=3" in told
    assert "roman.py" in told
    assert (tmp_path / "comparison" / "tables" / "differences.md").is_file()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("def questions(seed): yield 1", "1 should be a pair of texts"),
        ("def questions(seed): return []", "yields no questions"),
        ("def questions(seed): return 1 / 0", "division by zero"),
        ("def question(seed): ...", "should have a function questions(seed)"),
        ("def questions(seed)", "SyntaxError"),
        ("import no_such_package", "No module named"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(file, content, said):
    file.write_text(content)
    with pytest.raises(TaskError, match=r"benchmark\.file=.*roman\.py") as refused:
        OwnQuestions(OwnQuestionsConfig(file=file), 0)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("body", ["return 1", "raise KeyError(text)"])
def test_a_reading_that_fails_is_told_with_the_answer_that_it_failed_on(file, body):
    file.write_text(f"def questions(seed): yield 'a', 'b'\ndef read(text): {body}\n")
    with pytest.raises(TaskError, match=r"roman\.py: read\('x'\)"):
        OwnQuestions(OwnQuestionsConfig(file=file), 0).score(0, answered("x"))


def test_a_missing_file_ends_the_command_before_a_model_is_loaded(arguments, file, tmp_path, capsys):
    file.unlink()
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "engine.model.name=no/such/model/at/all"])
    assert ended.value.code == 2
    assert not (tmp_path / "mine").exists()
    assert capsys.readouterr().err.count("\n") == 1
