import json
from pathlib import Path

import pytest

from lab.benchmarks.cost import tables as cost
from lab.benchmarks.cost.scoring import Variant, cache_bytes, equal_memory_batch, summarize
from lab.benchmarks.results import Reading, Sample
from lab.cost import main
from lab.engines.engine import Completion
from lab.numbers.sampling import Problem
from tests.records import records

ROOT = Path(__file__).parents[1]


@pytest.fixture
def arguments(toy_model, tmp_path):
    """The shipped config, cut down to a toy model, a few short problems and two rules of one line. In float32,
    because texts must be equal, and a toy's likeliest tokens are nearly equally likely."""
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "length_integer.py").write_text("def length(num):\n    return str(len(num))\n")
    (rules / "get_digit_integer.py").write_text("def get_digit(num, place):\n    return num[int(place)]\n")

    def build(*more: str) -> list[str]:
        models = [f"{part}={{name: {toy_model}, device: cpu, dtype: float32}}" for part in ("direct", "rule_following")]
        small = ["tasks=[get_digit_integer, length_integer]", "lengths.easy=[5, 6]", "problems_per_length=1"]
        small += [f"rules={{unit: 1, window: 2000, folder: {rules}}}"]
        own = [f"output={tmp_path}", "name=run", "batch_size=2", *more]
        return [str(ROOT / "configs" / "cot_vs_direct.yaml"), *models, *small, *own]

    return build


VARIANTS = {
    "rule following, shared prefix",
    "rule following, plain loop",
    "direct",
    "direct, equal memory",
    "direct, plain loop",
}


def stem(variant: str) -> str:
    return variant.replace(", ", "_").replace(" ", "_")


@pytest.mark.slow
def test_every_way_to_answer_is_measured_on_the_same_problems_and_a_cut_run_goes_on(arguments, tmp_path, capsys):
    main(arguments())
    run = tmp_path / "run"
    printed = capsys.readouterr().out
    assert "rule following, shared prefix" in printed
    summary = json.loads((run / "summary.json").read_text())
    found = {**summary["direct"], **summary["rule_following"]}
    assert set(found) == VARIANTS
    samples = {name: records(run / f"samples_{stem(name)}.jsonl") for name in VARIANTS}
    asked = [(s["task"], s["a"], s["b"]) for s in sorted(samples["direct"], key=lambda sample: sample["index"])]
    for name in VARIANTS:
        in_order = sorted(samples[name], key=lambda sample: sample["index"])
        assert [(s["task"], s["a"], s["b"]) for s in in_order] == asked
        assert found[name]["overall"]["seconds"]["n"] == len(asked) == 4
        assert found[name]["overall"]["seconds"]["value"] == pytest.approx(sum(s["seconds"] for s in in_order) / 4)
    texts = [{s["index"]: s["text"] for s in samples[name]} for name in VARIANTS if name.startswith("rule")]
    assert texts[0] == texts[1]
    assert summary["rule_following"]["rule following, shared prefix"]["tokens_per_pass"]["value"] == 1
    assert 2 < summary["direct"]["direct, equal memory"]["batch_size"] <= 4
    assert summary["direct"]["direct"]["peak_bytes"] is None
    ratio = summary["ratios"]["rule following, plain loop"]["direct, plain loop"]["overall"]
    assert ratio["low"] <= ratio["value"] <= ratio["high"]
    assert (run / "table.md").read_text().count("\n| overall |") == 2 + 5
    assert (run / "lengths.md").read_text().count("| get_digit_integer | 5 |") == 5
    assert (run / "figures" / "cost.png").stat().st_size > 10_000

    kept = samples["rule following, plain loop"][:1]
    (run / "samples_rule_following_plain_loop.jsonl").write_text("".join(json.dumps(s) + "\n" for s in kept))
    (run / "samples_direct_plain_loop.jsonl").unlink()
    (run / "status").write_text("running\n")
    main(arguments("resume=true"))
    resumed = json.loads((run / "summary.json").read_text())
    for name in VARIANTS - {"rule following, plain loop", "direct, plain loop"}:
        assert resumed[name.partition(",")[0].replace(" ", "_")][name] == found[name]
    again = records(run / "samples_rule_following_plain_loop.jsonl")
    assert again[:1] == kept
    assert len(again) == 4


@pytest.mark.slow
def test_problems_that_do_not_fit_are_left_out_and_the_plain_loop_need_not_be_measured(arguments, tmp_path, capsys):
    main(arguments("plain=false", "rules.window=300"))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert set(summary["rule_following"]) == {"rule following, shared prefix"}
    assert set(summary["direct"]) == {"direct", "direct, equal memory"}
    assert summary["left_out"] == {"get_digit_integer": 2}
    assert "left out because they need more than 300 tokens: {'get_digit_integer': 2}" in capsys.readouterr().out
    assert summary["direct"]["direct"]["overall"]["seconds"]["n"] == 2


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("tasks=[add_intger]", "did you mean add_integer"),
        ("rules.window=10", "no problem fits a window of 10 tokens"),
        ("direct.name=nowhere/at_all", "cannot be reached"),
        (
            "lengths={hard: [1, 2], easy: [1, 2]}",
            "holds no length at which one of tasks is tested: get_digit_integer at 5-100",
        ),
        ("direct.device=auto", "times can only be compared on one device"),
    ],
)
def test_bad_input_is_one_clear_line_with_status_2_and_writes_nothing(arguments, tmp_path, capsys, override, message):
    with pytest.raises(SystemExit) as stopped:
        main(arguments(override))
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_place_for_the_tables_that_cannot_be_written_is_told_before_runs_are_read(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path), f"out={tmp_path / 'file' / 'out'}"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.endswith("file/out: Not a directory\n")


def test_a_rule_that_cannot_be_followed_is_noticed_before_a_model_is_loaded(arguments, tmp_path, capsys):
    (tmp_path / "rules" / "length_integer.py").write_text("import os\n")
    with pytest.raises(SystemExit) as stopped:
        main(arguments("direct.name=nowhere/at_all"))
    assert stopped.value.code == 2
    assert "length_integer.py" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def sample(task: str, length: int, seconds: float, tokens: tuple[int, int], right: bool) -> Sample:
    item = Problem(task, "integer", "1", "2", "3", length)
    return Sample(0, item, "", Completion("", *tokens, seconds, "stop"), {"strict": Reading("3", right, 1.0, 0)})


def test_the_figures_are_those_worked_out_by_hand():
    # two additions and a maximum: one of the direct answers is right, and two of those with a rule
    direct = Variant(
        2,
        100,
        8,
        [
            sample("add", 3, 1.0, (5, 2), False),
            sample("add", 4, 1.0, (6, 2), False),
            sample("max", 3, 2.0, (9, 3), True),
        ],
        [{"row_passes": 7, "written": 7}],
    )
    rules = Variant(
        2,
        100,
        8,
        [
            sample("add", 3, 6.0, (50, 30), True),
            sample("add", 4, 8.0, (50, 40), False),
            sample("max", 3, 6.0, (40, 20), True),
        ],
        [{"row_passes": 20, "written": 60, "peak_bytes": 5}, {"row_passes": 10, "written": 30, "peak_bytes": 9}],
    )
    # the two longest requests of each: 12 and 8 tokens, 90 and 80
    assert (cache_bytes(direct), cache_bytes(rules)) == (8 * 20, 8 * 170)
    batches = {0: 1, 12: 1, 20: 2, 26: 2, 27: 3, 170: 3}
    assert {tokens: equal_memory_batch(direct, 8 * tokens) for tokens in batches} == batches
    typed = summarize({"direct": direct}, {"rule following": rules}, {})
    summary = typed.to_json()
    found = summary["rule_following"]["rule following"]
    assert found["overall"]["seconds"]["value"] == pytest.approx(20 / 3)
    assert found["overall"]["accuracy"]["value"] == pytest.approx(2 / 3)
    assert found["overall"]["seconds_per_correct"]["value"] == 10
    assert found["overall"]["cache_bytes"]["value"] == pytest.approx(8 * (80 + 90 + 60) / 3)
    assert found["tokens_per_pass"]["value"] == 3
    assert found["peak_bytes"] == 9
    assert found["tasks"]["add_integer"]["seconds_per_correct"]["value"] == 14
    # a bootstrap draw may hold the wrong addition twice, so there is no upper bound
    assert found["tasks"]["add_integer"]["seconds_per_correct"]["high"] is None
    assert found["tasks"]["add_integer"]["lengths"]["4"]["seconds_per_correct"] is None
    ratio = summary["ratios"]["rule following"]["direct"]
    assert ratio["overall"]["value"] == 20 / 4
    assert (ratio["tasks"]["add_integer"]["value"], ratio["tasks"]["max_integer"]["value"]) == (7, 3)
    # a draw of the maximum alone has the ratio 3, and one of a single addition at most 8
    assert 3 <= ratio["overall"]["low"] < 5 < ratio["overall"]["high"] <= 8
    json.dumps(summary, allow_nan=False)
    tables = cost.all_tables(typed)
    assert "| add_integer | rule following | 2 | 7 (6-8) |" in tables["tasks"].markdown()
    assert "| 14 (6-inf) |" in tables["tasks"].markdown()
    assert "| overall | rule following | 5 (" in tables["ratios"].markdown()
