"""What a new benchmark touches: no file of the lab if it is a folder of the user's, four files if it is the lab's."""

import json
from pathlib import Path

import pytest

from lab.evaluate import main

LAB = Path(__file__).parents[2] / "lab"
OFFERED_ELSEWHERE = ("plugins", "site")
"""Packages that may also offer or show a benchmark."""

PARITY = '''
"""Is a number even?"""
from pathlib import Path

NUMBERS = Path(__file__).with_name("numbers.txt")

def questions(seed):
    for number in NUMBERS.read_text().split():
        yield f"Is {number} even or odd?", "odd" if int(number) % 2 else "even"

def read(text):
    found = [word for word in ("even", "odd") if word in text.lower()]
    return found[0] if len(found) == 1 else None
'''


def test_a_benchmark_in_a_folder_of_the_user_is_measured_with_its_own_data(toy_model, tmp_path, capsys):
    plugin = tmp_path / "parity"
    plugin.mkdir()
    (plugin / "parity.py").write_text(PARITY)
    (plugin / "numbers.txt").write_text("12 345 6789\n")
    config = tmp_path / "parity.yaml"
    config.write_text(
        f"name: run\noutput: {tmp_path}\nengine: {{kind: local, model: {{name: {toy_model}, device: cpu}}}}\n"
        f"benchmark: {{kind: own_questions, file: {plugin / 'parity.py'}, setting: base, max_tokens: 4}}\n"
    )
    main([str(config)])
    samples = [json.loads(line) for line in (tmp_path / "run" / "samples.jsonl").read_text().splitlines()]
    found = {sample["asked"]: sample["answer"] for sample in samples}
    assert found == {"Is 12 even or odd?": "even", "Is 345 even or odd?": "odd", "Is 6789 even or odd?": "odd"}
    main([str(tmp_path / "run")])
    assert "own_questions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "own"), [("two_integers", "sums/two_integers"), ("carry_free", "sums/carry_free"), ("own_questions",) * 2]
)
def test_a_benchmark_of_the_lab_stands_in_its_own_file_and_in_three_more(kind, own):
    names = kind, "".join(part.capitalize() for part in kind.split("_"))
    files = {
        path.relative_to(LAB).as_posix() for path in LAB.rglob("*.py") if any(n in path.read_text() for n in names)
    }
    elsewhere = {path for path in files if path.split("/")[0] in OFFERED_ELSEWHERE}
    shared = {"config/evaluation.py", "benchmarks/kinds.py", "benchmarks/results.py"}
    assert files - elsewhere == {f"benchmarks/{own}.py", *shared}
