import json

import pytest

from experiments.shared.kept import Kept, identified
from lab.errors import RunError


def test_what_is_kept_is_measured_once_and_known_when_a_script_runs_again(tmp_path, capsys):
    made = []

    def measure():
        made.append(1)
        return {"right": [1, 0]}

    file = tmp_path / "run" / "kept.json"
    for _ in range(2):
        kept = Kept(file)
        assert kept.once("20 digits", measure, lambda value: sum(value["right"])) == {"right": [1, 0]}
    assert len(made) == 1
    assert json.loads(file.read_text()) == {"20 digits": {"right": [1, 0]}}
    assert capsys.readouterr().out == "run 20 digits 1\n"


def test_two_processes_keep_what_the_other_has_measured(tmp_path):
    first, second = (Kept(tmp_path / "kept.json") for _ in range(2))
    first.keep("a", 1)
    second.keep("b", 2)
    first.keep("c", 3)
    assert Kept(tmp_path / "kept.json").known == {"a": 1, "b": 2, "c": 3}
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]


@pytest.mark.parametrize("text", ['{"a": 1', "[1]"])
def test_a_damaged_file_is_named_in_one_line(tmp_path, text):
    (tmp_path / "kept.json").write_text(text)
    with pytest.raises(RunError, match=r"^\S*kept\.json: [^\n]*$"):
        Kept(tmp_path / "kept.json")


def test_another_training_under_the_same_name_is_another_model(tmp_path):
    (tmp_path / "model").mkdir()
    weights = tmp_path / "model" / "adapter_model.safetensors"
    weights.write_bytes(b"one")
    first = identified(str(tmp_path))
    assert first == identified(str(tmp_path))
    weights.write_bytes(b"two")
    assert first.split()[0] == identified(str(tmp_path)).split()[0]
    assert first != identified(str(tmp_path))
