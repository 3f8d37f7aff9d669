import csv
import json
from pathlib import Path

import pytest

from lab.benchmarks.nupa.scoring import Nupa
from lab.config.evaluation import EvaluateConfig
from lab.config.loading import dump, load
from lab.evaluate import main
from lab.runs import Run
from tests.forked import Forked
from tests.records import records

ROOT = Path(__file__).parents[1]


@pytest.fixture
def arguments(toy_model, tmp_path):
    """The shipped config, cut down to a toy model and a few problems."""

    def build(*more: str, name: str = "run") -> list[str]:
        return [
            str(ROOT / "configs" / "nupa_smollm2.yaml"),
            f"engine.model.name={toy_model}",
            "engine.model.device=cpu",
            f"output={tmp_path}",
            f"name={name}",
            "benchmark.tasks=[add_integer, max_fraction]",
            "benchmark.lengths={hard: [1, 8], easy: [1, 20]}",
            "benchmark.problems_per_range=6",
            *more,
        ]

    return build


@pytest.mark.parametrize("shots", [0, 5])
def test_a_run_leaves_samples_summary_tables_and_figures(arguments, tmp_path, capsys, shots):
    main(arguments(f"benchmark.shots={shots}"))
    run = tmp_path / "run"
    printed = capsys.readouterr().out
    assert "\nno well-learned digits, which need 20 answers at every length" in printed  # not the first line
    assert len(printed.splitlines()) <= 8
    assert "exact match, % (95 % interval), n=24: 0 " in printed
    assert f"run directory: {run} (tables/, figures/)\nnext: lab report" in printed
    assert (run / "status").read_text() == "finished\n"
    samples = records(run / "samples.jsonl")
    assert sorted(sample["index"] for sample in samples) == list(range(24))
    assert all(sample["prompt"].count("=") == 1 + shots for sample in samples)
    assert {sample["strict"]["error"] for sample in samples if sample["task"] == "max"} == {None}
    summary = json.loads((run / "summary.json").read_text())["nupa"]
    assert summary["add_integer"]["domains"]["S+M"]["strict"]["exact_match"]["n"] == 12
    for name in ("exact_match_strict", "dlength_loose", "digits_by_exact_match", "readings", "errors_of_sums"):
        assert "| add_integer |" in (run / "tables" / f"{name}.md").read_text()
        assert (run / "tables" / f"{name}.csv").exists()
    for name in ("exact_match", "digit_match", "dlength"):
        assert (run / "figures" / f"{name}.png").stat().st_size > 10_000
    assert "cpu" in json.loads((run / "environment.json").read_text())["device"]


@pytest.mark.slow
def test_a_request_is_formed_once(arguments, monkeypatch):
    formed = []
    form = Nupa._request
    monkeypatch.setattr(Nupa, "_request", lambda self, item, *rest: formed.append(item) or form(self, item, *rest))
    main(arguments())
    assert len(formed) == len(set(formed)) == 24


@pytest.mark.slow
def test_rules_are_followed_in_the_test_and_where_they_are_left_is_shown(arguments, tmp_path, capsys):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "add_integer.py").write_text("def f(a, b):\n    c = int(a) + int(b)\n    return str(c)\n")
    follow = ("benchmark.setting=rule_following", "benchmark.tasks=[add_integer]", "benchmark.problems_per_range=2")
    folder = f"benchmark.rules.folder={tmp_path / 'rules'}"
    main(arguments(*follow, folder, "benchmark.lengths={hard: [1, 8]}"))
    assert "the first line that departs from a rule" in capsys.readouterr().out
    samples = records(tmp_path / "run" / "samples.jsonl")
    assert all("Rule:\ndef f(a, b):" in sample["prompt"] and sample["first_error"] for sample in samples)
    for wrong, message in (
        (folder + "s", "there is no folder"),
        ("benchmark.rules.window=9", "no problem fits a window of 9 tokens"),
        ("benchmark.shots=2", "shots should be 0"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments(*follow, wrong, name="other"))
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "other").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["two_integers", "carry_free"])
def test_a_sister_benchmark_is_measured_the_same_way(toy_model, tmp_path, capsys, kind):
    size = "benchmark.problems=7" if kind == "two_integers" else "benchmark.problems_per_length=1"
    (toy_model / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}\n{% endfor %}")
    engine = f"engine={{kind: local, model: {{name: {toy_model}, device: cpu}}}}"
    try:
        config = str(ROOT / "configs" / f"{kind}.yaml")
        main([config, engine, f"output={tmp_path}", "name=run", size, "benchmark.max_tokens=12", "limit=7"])
    finally:
        (toy_model / "chat_template.jinja").unlink()
    printed = capsys.readouterr().out
    assert "right sums, % (95 % interval), n=7: strict 0 " in printed
    assert (tmp_path / "run" / "tables" / "success.md").is_file()
    run = tmp_path / "run"
    samples = records(run / "samples.jsonl")
    assert len(samples) == 7
    assert all(int(sample["int1"]) + int(sample["int2"]) == int(sample["answer"]) for sample in samples)
    summary = json.loads((run / "summary.json").read_text())[kind]
    assert summary["asked"] == summary["answered"] == 7
    assert {path.stem for path in (run / "figures").iterdir()} == {"accuracy", "outcomes"}
    if kind == "carry_free":
        wrong = [sample["index"] for sample in samples if sample["parse_error"]]
        assert [sample["index"] for sample in records(run / "parse_errors.jsonl")] == wrong


def test_a_model_without_a_chat_template_says_so(arguments, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments("benchmark.setting=chat"))
    assert stopped.value.code == 2
    assert "use benchmark.setting=base, or a chat model" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_runs_stand_side_by_side_with_the_papers_rows(arguments, tmp_path, capsys):
    main(arguments(name="one"))
    main(arguments("seed=1", name="two"))
    capsys.readouterr()
    main([str(tmp_path / "one"), str(tmp_path / "two"), f"out={tmp_path / 'both'}"])
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) < 30
    for told in ("one: ", "two: ", "no two of these runs share a problem"):
        assert told in printed
    table = (tmp_path / "both" / "tables" / "exact_match_strict.md").read_text()
    assert "| add_integer | Llama-3.1-8B-ft (paper, Table 18) | 95 | 65 | 12 | 1 |  |  |  |" in table
    digits = (tmp_path / "both" / "tables" / "digits_by_digit_match.md").read_text()
    assert "GPT-4o (paper, Table 8)" in digits
    assert (tmp_path / "both" / "figures" / "exact_match.png").exists()


@pytest.mark.slow
def test_where_runs_differ_on_the_same_problems_is_told_from_chance(arguments, tmp_path, capsys):
    for name, more in {"one": (), "two": (), "other_problems": ("seed=1",)}.items():
        main(arguments(*more, name=name))
    two = Run(tmp_path / "two")
    lines = two.read("samples")
    for line in lines:
        if line["task"] == "max":
            line["strict"] = {"given": line["answer"], "exact_match": True, "digit_match": 1.0, "dlength": 0}
    two.rewrite("samples", lines)
    capsys.readouterr()
    main([str(tmp_path / name) for name in ("one", "two")] + [f"out={tmp_path / 'both'}"])
    assert "two against one, in points: +50 " in capsys.readouterr().out
    table = (tmp_path / "both" / "tables" / "differences.md").read_text()
    assert "| two | add_integer | 12 | 0 (0-24) | 0 (0-24) | +0 (-24 to +24) | 1.000 | 58 |" in table
    # 12 gained and none lost: p = 2 / 2^12, times 2 for what Holm ranks second, after all 24 problems with the same p
    assert "| two | max_fraction | 12 | 0 (0-24) | 100 (76-100) | +100 (+66 to +100) | 0.001 | 83 |" in table
    capsys.readouterr()
    main([str(tmp_path / "one"), str(tmp_path / "other_problems"), f"out={tmp_path / 'apart'}"])
    assert "against" not in capsys.readouterr().out
    assert not (tmp_path / "apart" / "tables" / "differences.md").exists()


@pytest.mark.slow
def test_what_cannot_be_compared_is_one_line(arguments, tmp_path, capsys):
    main(arguments("benchmark.problems_per_range=1"))
    run = tmp_path / "run"
    (tmp_path / "empty").mkdir()
    (tmp_path / "old").mkdir()
    (tmp_path / "file").touch()
    for name in ("status", "summary.json", "config.yaml"):
        (tmp_path / "old" / name).write_text("finished\n" if name == "status" else '{"version": 0}')
    for bad, message in (
        ([tmp_path / "empty"], "not a finished run"),
        ([tmp_path / "nowhere", run], "there is no such run"),
        ([tmp_path / "old"], "another version of the lab"),
        ([run, f"out={tmp_path / 'file'}"], "should be a new folder"),
        ([run, f"out={run}"], "not a run directory"),
        ([run, "--out", "x"], "options are written key=value"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(list(map(str, bad)))
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err
    (run / "status").write_text("running\n")
    with pytest.raises(SystemExit):
        main([str(run)])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nupa_smolm2"], "nupa_smolm2: there is no such run or config, did you mean nupa_smollm2?"),
        (["x" * 300], "x: there is no such run or config"),
        (["{0}", "out={0}/file/out"], "file/out: Not a directory"),
        (["nupa_smollm2", "export={0}/file/out"], "file/out: Not a directory"),
    ],
)
def test_what_is_mistyped_or_cannot_be_written_is_one_line_before_anything_is_computed(
    words, message, tmp_path, capsys
):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stopped:
        main([word.format(tmp_path) for word in words])
    told = capsys.readouterr().err
    assert (stopped.value.code, told.count("\n")) == (2, 1)
    assert message in told


@pytest.mark.slow
def test_the_twin_without_locality_adds_twenty_digits_once_the_test_bounds_how_much_far_digits_weigh(tmp_path):
    def right(*changes):
        tasks = "benchmark={kind: nupa, tasks: [add_integer], lengths: {hard: [20, 20], easy: [20, 20]}}"
        model = f"engine.model.name={ROOT / 'checkpoints' / 'zoo' / 'adds-10-without-locality'}"
        own = ["benchmark.problems_per_range=10", f"output={tmp_path}", "overwrite=true", model, tasks, *changes]
        main([str(ROOT / "configs" / "nupa_smollm2.yaml"), *own])
        return sum(record["strict"]["exact_match"] for record in records(tmp_path / "nupa_smollm2" / "samples.jsonl"))

    assert right() <= 2
    assert right("engine.parts.far_digits.at_most=5") == 10


@pytest.mark.slow
def test_names_that_are_markup_elsewhere_are_names_here(arguments, tmp_path, capsys):
    for name in ("$a_$", "_hidden", "a|b", "x[b]y"):
        main(arguments("benchmark.problems_per_range=1", name=name))
    capsys.readouterr()
    main([*(str(tmp_path / name) for name in ("$a_$", "_hidden", "a|b", "x[b]y")), f"out={tmp_path / 'all'}"])
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("$a_$", "_hidden", "a|b", "x[b]y"))
    assert r"| a\|b |" in (tmp_path / "all" / "tables" / "exact_match_strict.md").read_text()


@pytest.mark.slow
def test_tables_read_from_disk_keep_their_order_and_hold_every_estimate_in_full(arguments, tmp_path):
    main(arguments("benchmark.problems_per_range=10", "benchmark.tasks=[max_integer]"))
    main([str(tmp_path / "run"), f"out={tmp_path / 'out'}"])
    for table in ("by_length", "readings", "exact_match_strict"):
        alone = list(csv.DictReader((tmp_path / "run" / "tables" / f"{table}.csv").open()))
        compared = list(csv.DictReader((tmp_path / "out" / "tables" / f"{table}.csv").open()))
        assert alone == compared
    lengths = [int(row["length"]) for row in csv.DictReader((tmp_path / "out" / "tables" / "by_length.csv").open())]
    assert lengths == list(range(5, 21))
    (row,) = csv.DictReader((tmp_path / "out" / "tables" / "exact_match_strict.csv").open())
    assert 0 <= float(row["S low"]) <= float(row["S value"]) <= float(row["S high"]) <= 1
    assert row["S n"] == "10"


def test_a_resumed_run_may_change_how_it_reaches_its_endpoint_but_not_what_it_asks(tmp_path, capsys):
    config = str(ROOT / "configs" / "two_integers.yaml")
    path = tmp_path / "run"
    Run.open(path, dump(load(EvaluateConfig, Path(config), [f"output={tmp_path}", "name=run"])))._held.close()
    for change, message in (("engine.concurrency=1", "cannot be reached"), ("benchmark.problems=3", "another config")):
        nowhere = "engine.base_url=http://127.0.0.1:1/v1"
        with pytest.raises(SystemExit) as stopped:
            main([config, f"output={tmp_path}", "name=run", nowhere, change, "resume=true", "engine.attempts=1"])
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err


@pytest.mark.slow
def test_the_problems_of_a_config_are_exported(arguments, tmp_path, capsys):
    main([*arguments(), f"export={tmp_path / 'nupa'}"])
    assert {path.name for path in (tmp_path / "nupa").iterdir()} == {"README.md", "data", "test.json"}
    assert "24 problems" in capsys.readouterr().out
    main(arguments(f"benchmark.published={tmp_path / 'nupa' / 'test.json'}"))
    assert len(records(tmp_path / "run" / "samples.jsonl")) == 24
    main([*arguments("limit=3"), f"export={tmp_path / 'few'}"])
    assert "3 problems" in capsys.readouterr().out
    # The licence and origin of published questions are not ours to state.
    published = f"benchmark.published={tmp_path / 'nupa' / 'test.json'}"
    for bad in (
        [*arguments(), f"export={tmp_path / 'nupa'}"],
        [*arguments(), "export="],
        [*arguments(published), f"export={tmp_path / 'again'}"],
    ):
        with pytest.raises(SystemExit) as stopped:
            main(bad)
        assert stopped.value.code == 2


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("benchmark.tasks=[add_intger]", "did you mean add_integer"),
        ("benchmark.kind=nupe", "nupa"),
        ("engine.kind=openai", "base_url"),
        ("engine={kind: openai, model: x, base_url: 'http://user:secret@host/v1'}", "should contain no key"),
        ("engine={kind: openai, model: x, base_url: 'host/v1'}", "should be the root of an API"),
        ("engine={kind: openai, model: x, base_url: 'http://h/v1', api_key_env: LAB_NO_SUCH}", "LAB_NO_SUCH"),
        ("engine={kind: vllm, model: x}", "should be 'local', 'openai'"),
        ("benchmark.lengths={hard: [1, 2], easy: [1, 2]}", "add_integer"),
        ("benchmark.published=/nowhere.json", "No such file"),
        ("benchmark.setting=api2", "api"),
        ("sampling.top_p=0", "top_p"),
        ("sampling.temperature=1e-40", "should be 0, which is greedy, or 0.001 or more"),
        ("engine.parts.clipped_distances.at=9", "clipped_distances cannot be changed in this model: only models"),
        ("engine.clip_distance=9", "clip_distance"),
        ("limit=0", "limit"),
    ],
)
def test_bad_input_is_one_clear_line_with_status_2_and_writes_nothing(arguments, tmp_path, capsys, override, message):
    if "hard: [1, 2]" in override:
        override = "benchmark.lengths={hard: [1, 2], easy: [1, 2]}"
        message = "holds no length at which one of tasks is tested"
        arguments_ = [*arguments("benchmark.tasks=[add_integer]", override)]
    else:
        arguments_ = arguments(override)
    with pytest.raises(SystemExit) as stopped:
        main(arguments_)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_killed_run_asks_only_for_what_is_missing_and_ends_as_an_undisturbed_one(arguments, tmp_path):
    longer = ["benchmark.problems_per_range=60", "engine.batch_size=16", "sampling.temperature=0.6"]

    def start(*more: str) -> Forked:
        return Forked(["lab.evaluate", *arguments(*longer, *more)], tmp_path / "log")

    path = tmp_path / "run" / "samples.jsonl"
    start().kill_when(lambda: path.exists() and len(path.read_bytes().splitlines()) >= 20)
    with path.open("ab") as file:
        file.write(b'{"index": 999, "cut')
    kept = path.read_bytes().splitlines()[:20]
    assert start("resume=true").wait() == start("name=whole").wait() == 0
    assert path.read_bytes().splitlines()[:20] == kept
    assert len(records(path)) == 240
    resumed, undisturbed = ((tmp_path / name / "summary.json").read_bytes() for name in ("run", "whole"))
    assert resumed == undisturbed


LOCAL = {"kind": "local", "model": {"name": "x"}}
SERVER = {"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "x"}


@pytest.mark.parametrize(
    ("engine", "temperature", "seed"),
    [(LOCAL, 0.0, "run"), (LOCAL, 0.6, "run"), (SERVER, 0.0, "run"), (SERVER, 0.6, None)],
)
def test_a_seed_of_null_is_what_it_was_in_earlier_versions_unless_an_endpoint_can_do_without(engine, temperature, seed):
    sampling = {"temperature": temperature, "top_p": 1.0, "seed": None}
    read = {"name": "x", "engine": engine, "benchmark": {"kind": "two_integers"}, "sampling": sampling}
    assert EvaluateConfig.model_validate(read).sampling.seed == seed


@pytest.mark.parametrize("override", ["engine.model.dtype=bfloat16", "engine.model.quantization=nf4"])
def test_keys_that_would_do_nothing_for_a_model_from_scratch_are_refused(arguments, tmp_path, capsys, override):
    name = f"engine.model.name={ROOT / 'checkpoints' / 'zoo' / 'adds-4-digits'}"
    with pytest.raises(SystemExit) as stopped:
        main(arguments(name, override))
    assert stopped.value.code == 2
    assert f"which computes in float32: leave {override} out" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("override", ["engine.parts.even_spacing={}", "engine.parts.far_digits=null"])
def test_an_adder_has_no_parts_to_change(arguments, tmp_path, capsys, override):
    name = f"engine.model.name={ROOT / 'checkpoints' / 'zoo' / 'adder-8-parameters'}"
    with pytest.raises(SystemExit) as stopped:
        main(arguments(name, override))
    assert stopped.value.code == 2
    assert "does not go with a smallest adder" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
