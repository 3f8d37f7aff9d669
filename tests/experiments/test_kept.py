import json

from experiments.shared.kept import Kept


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
