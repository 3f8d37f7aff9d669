from experiments.shared.publishing import beside_runs
from lab.drawing.tables import Table

TABLE = Table("Sums", ("model", "right"), [("toy", "7")], 1)


def test_results_go_beside_the_runs(tmp_path, capsys):
    results = beside_runs([f"output={tmp_path / 'runs'}", "seeds=7"])
    results.show(TABLE, "sums")
    assert (tmp_path / "runs" / "results" / "sums.md").read_text() == f"Sums\n\n{TABLE.markdown()}"
    assert str(tmp_path / "runs" / "results" / "sums.md") in capsys.readouterr().out.replace("\n", "")
