import pytest

from experiments.shared.publishing import take_results
from lab.drawing.tables import Table
from lab.errors import ConfigError

TABLE = Table("Sums", ("model", "right"), [("toy", "7")], 1)


def test_results_go_beside_the_runs_and_the_repository_stays_as_it_is(tmp_path, capsys):
    repository = tmp_path / "committed"
    results, rest = take_results([f"output={tmp_path / 'runs'}", "seeds=7"], repository)
    results.show(TABLE, "sums")
    assert rest == [f"output={tmp_path / 'runs'}", "seeds=7"]
    assert (tmp_path / "runs" / "results" / "sums.md").read_text() == f"Sums\n\n{TABLE.markdown()}"
    assert str(tmp_path / "runs" / "results" / "sums.md") in capsys.readouterr().out.replace("\n", "")
    assert not repository.exists()


def test_results_go_into_the_repository_only_if_they_are_published(tmp_path):
    results, rest = take_results([f"output={tmp_path / 'runs'}", "publish=true"], tmp_path / "committed")
    results.show(TABLE, "sums")
    assert rest == [f"output={tmp_path / 'runs'}"]
    assert (tmp_path / "committed" / "sums.md").is_file()
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("said", ["yes", "True", ""])
def test_any_other_word_than_true_or_false_is_refused(said, tmp_path):
    with pytest.raises(ConfigError, match=f"publish={said}: should be true or false"):
        take_results([f"publish={said}"], tmp_path)
