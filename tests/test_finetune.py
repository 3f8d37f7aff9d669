import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import lab
from lab.finetune import main
from tests.forked import Forked
from tests.records import records

ROOT = Path(__file__).parents[1]
WALKS = "parts={coupled: {}, walk: {heads: 1}}"
AS_WRITTEN = ["format={reverse: none, pad: answer, carry_place: true}", "data.tasks=[add_integer]"]


@pytest.fixture
def arguments(toy_model, tmp_path):
    """The shipped config, cut down to a toy model and two steps."""

    def build(*more: str) -> list[str]:
        return [
            str(ROOT / "configs" / "smollm2_lora.yaml"),
            f"model.name={toy_model}",
            "model.device=cpu",
            f"output={tmp_path}",
            "name=run",
            "adapter.rank=2",
            "data.tasks=[add_integer, max_fraction]",
            "data.lengths={hard: [1, 3], easy: [1, 5]}",
            "training.max_steps=2",
            "training.batch_size=4",
            "training.micro_batch_size=2",
            "training.log_every=1",
            "training.evaluate_every=1",
            "training.valid_problems=4",
            "evaluation.lengths={hard: [1, 5], easy: [5, 5]}",
            "evaluation.problems_per_range=6",
            *more,
        ]

    return build


@pytest.mark.slow
@pytest.mark.parametrize(("name", "layer"), [("smollm2_qlora", "Linear4bit"), ("smollm2_int8", "Linear8bitLt")])
def test_a_model_whose_weights_are_stored_in_few_bits_is_tuned_and_opens_again(arguments, tmp_path, name, layer):
    config, *rest = arguments()
    main([config.replace("smollm2_lora", name), *rest])
    run = tmp_path / "run"
    losses = [row["loss"] for row in records(run / "metrics.jsonl") if "loss" in row]
    assert len(losses) == 2
    tuned = lab.load(str(run)).engine.model  # type: ignore[attr-defined]
    kinds = {type(module).__name__ for module in tuned.modules()}
    assert layer in kinds
    before, after = (records(run / f"samples_{when}.jsonl") for when in ("before", "after"))
    assert len(before) == len(after) > 0


def test_a_run_leaves_everything_that_its_table_stands_on(arguments, tmp_path, capsys):
    main(arguments())
    run = tmp_path / "run"
    printed = capsys.readouterr().out
    assert "add" in printed
    assert "after" in printed
    assert (run / "status").read_text() == "finished\n"
    rows = records(run / "metrics.jsonl")
    assert [row["step"] for row in rows if "valid_loss" in row] == [1, 2]
    assert [row["step"] for row in rows if "loss" in row] == [1, 2]
    before, after = (records(run / f"samples_{when}.jsonl") for when in ("before", "after"))
    assert sorted(s["index"] for s in before) == sorted(s["index"] for s in after)
    assert {s["length"] for s in before if s["task"] == "add"} == {3, 4, 5}
    assert all(
        (s["strict"]["exact_match"], s["strict"]["given"] == s["answer"]) in ((True, True), (False, False))
        for s in after
    )
    summary = json.loads((run / "summary.json").read_text())
    figures = summary["after"]["add_integer"]["ranges"]["M"]
    assert figures["strict"]["exact_match"]["n"] == 6
    assert figures["lengths"] == [5, 5]
    assert (run / "figures" / "before_after.png").stat().st_size > 10_000
    assert (run / "model" / "adapter_model.safetensors").exists()
    assert not (run / "checkpoints").exists()
    assert not [path for path in run.rglob("*") if path.suffix in (".bin", ".pt", ".pth", ".pkl")]
    assert "cpu" in json.loads((run / "environment.json").read_text())["device"]

    main(arguments("resume=true"))  # a finished run only prints its table again
    assert (run / "status").read_text() == "finished\n"
    (run / "samples_after.jsonl").write_text((run / "samples_after.jsonl").read_text().partition("\n")[0] + "\n")
    main(arguments("resume=true", "evaluation.batch_size=3"))  # asks for the missing answers, and changes none
    assert (run / "status").read_text() == "finished\n"
    assert json.loads((run / "summary.json").read_text()) == summary
    assert "batch_size: 3" in (run / "config.yaml").read_text()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.tasks=[add_intger]", "no task 'add_intger'; did you mean add_integer"),
        ("data.lengths.hard=[1, 21]", "should not go beyond 20 digits"),
        ("data.lengths.hard=[5, 2]", "should be [shortest, longest]"),
        ("training.max_step=5", "did you mean max_steps"),
        ("training.max_steps=five", "training.max_steps"),
        ("training.micro_batch_size=3", "micro_batch_size=3 should divide batch_size=4"),
        ("model.name=nowhere/at-all", "the model hub cannot be reached; a model that needs no hub is smollm2"),
        ("model.device=cuda", "no CUDA device"),
        ("adapter.targets=[no_such_layer]", "no_such_layer"),
        ("adapter.rank=97", "no layer of adapter.targets is wider than 64"),
        ("name=a/b", "should be the name of a folder"),
    ],
)
def test_bad_input_is_one_clear_line_with_status_2_and_writes_nothing(
    arguments, tmp_path, capsys, override, message, monkeypatch
):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit) as stopped:
        main(arguments(override))
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.fixture
def rules(tmp_path):
    """A folder with a rule that is shorter than the lab's."""
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "add_integer.py").write_text("def f(a, b):\n    c = int(a) + int(b)\n    return str(c)\n")
    return folder


FOLLOWING = ("data.style=rule_following", "data.tasks=[add_integer]", "evaluation.problems_per_range=2")


@pytest.mark.slow
def test_a_model_that_is_to_follow_rules_is_asked_and_trained_with_the_rule_in_the_prompt(arguments, tmp_path, rules):
    more = [*FOLLOWING, f"data.rules.folder={rules}", "data.rules.window=350", "data.lengths={hard: [1, 20]}"]
    main(arguments(*more, "evaluation.lengths={hard: [3, 20]}", "evaluation.problems_per_range=6"))
    run = tmp_path / "run"
    samples = records(run / "samples_after.jsonl")
    assert all("Rule:\ndef f(a, b):\n    c = int(a) + int(b)" in sample["prompt"] for sample in samples)
    summary = json.loads((run / "summary.json").read_text())["after"]["add_integer"]
    assert summary["left_out"] == 24 - len(samples) > 0  # in tokens of the toy model, which are bytes
    assert json.loads((run / "left_out.json").read_text())["train"]["add_integer"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ("def f(a, b):\n    return (", (), "rule add_integer.py, line 2: '(' was never closed"),
        ("import os", (), "rule add_integer.py, line 1: import outside a function"),
        ("def f(a, b):\n    return a", (), "rule add_integer: answers "),
        ("def f(a):\n    return a", (), "rule add_integer: f takes 1 values, not 2"),
        ("def f(a, b):\n    while True:\n        pass\n    return a", (), "add_integer: no end after 100000 steps"),
        ("def f(a, b):\n    return str(int(a) + int(b))", ("data.rules.window=9",), "no problem fits a window of 9"),
        ("def f(a, b):\n    return a", ("data.rules.unit=6",), "data.rules.unit"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_one_line_and_writes_nothing(
    arguments, tmp_path, capsys, rules, source, more, message
):
    (rules / "add_integer.py").write_text(source)
    with pytest.raises(SystemExit) as stopped:
        main(arguments(*FOLLOWING, f"data.rules.folder={rules}", *more))
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_missing_config_is_one_line(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["configs/none_such.yaml"])
    assert stopped.value.code == 2
    assert "none_such.yaml" in capsys.readouterr().err


def test_a_name_in_use_keeps_what_it_has(arguments, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work")
    for more in ([], ["overwrite=true"], ["resume=true"]):
        with pytest.raises(SystemExit) as stopped:
            main(arguments(*more))
        assert stopped.value.code == 2
    assert (tmp_path / "run" / "thesis.tex").read_text() == "years of work"


@pytest.mark.slow
def test_killed_while_scoring_and_while_training_a_resumed_run_ends_as_an_undisturbed_one(arguments, tmp_path):
    longer = [
        "training.max_steps=12",
        "training.evaluate_every=2",
        "evaluation.problems_per_range=30",
        "evaluation.batch_size=8",
    ]

    def start(*more: str) -> Forked:
        return Forked(["lab.finetune", *arguments(*longer, *more)], tmp_path / "log")

    def lines(name: str) -> list[str]:
        path = tmp_path / "run" / f"{name}.jsonl"
        return path.read_text().splitlines() if path.exists() else []

    start().kill_when(lambda: len(lines("samples_before")) >= 20)
    scored = len(lines("samples_before"))
    start("resume=true").kill_when(lambda: len(lines("metrics")) >= 7)
    assert len(lines("samples_before")) > scored
    assert (tmp_path / "run" / "status").read_text() == "running\n"
    assert start("resume=true").wait() == start("name=whole").wait() == 0
    for name in ("summary.json", "metrics.jsonl", "table.md", "model/adapter_model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "swap",
    [
        ["parts.same_place={}", "format.reverse=total"],
        ["parts.coupled={window: 1, layers: [0, 0]}", "format.reverse=total"],
        ["parts.coupled={}", "format.reverse=answer"],
        [WALKS, *AS_WRITTEN, "parts.walk.loss_weight=0.1"],
        ["parts={alibi: {}, place_embeddings: {places: 40}}", "format.reverse=integer"],
        ["tokenizer.digits={kind: k_digit, k: 2, align: left}", "format={reverse: integer, pad: all}"],
        ["format.index_hints=both"],
        ["data.curriculum=2"],
    ],
    ids=[
        "same place",
        "coupled",
        "coupled, only answers reversed",
        "coupled, nothing reversed",
        "places in alibi",
        "two digits",
        "hints",
        "growing lengths",
    ],
)
def test_a_swapped_model_is_tuned_and_measured_again_by_its_run_directory_alone(arguments, swap, tmp_path):
    from lab.evaluate import main as evaluate

    main(arguments(*swap, "data.tasks=[add_integer, add_float]"))
    tuned = records(tmp_path / "run" / "samples_after.jsonl")
    config = ROOT / "configs" / "nupa_smollm2.yaml"
    engine = f"engine={{kind: local, model: {{name: '{tmp_path}/run', device: cpu}}}}"
    asked = ["benchmark.tasks=[add_integer, add_float]", "benchmark.lengths={hard: [1, 5], easy: [5, 5]}"]
    evaluate([str(config), engine, *asked, "benchmark.problems_per_range=6", f"output={tmp_path}", "name=again"])
    again = records(tmp_path / "again" / "samples.jsonl")
    shown = ("prompt", "text", "answer", "strict")
    assert {json.dumps([s[key] for key in shown]) for s in tuned} == {
        json.dumps([s[key] for key in shown]) for s in again
    }


@pytest.mark.slow
def test_the_adapters_of_each_validation_are_kept_with_their_swap_and_opened_like_a_run(arguments, tmp_path):
    swap = ["parts.same_place={}", "format.reverse=total"]
    main(arguments(*swap, "training.keep_steps=true", "data.tasks=[add_integer]"))
    run = tmp_path / "run"
    assert sorted(folder.name for folder in (run / "steps").iterdir()) == ["0000001", "0000002"]
    best = json.loads((run / "training_times.jsonl").read_text())["kept_step"]
    weights = {
        folder: load_file(folder / "model" / "adapter_model.safetensors")
        for folder in (run, *sorted((run / "steps").iterdir()))
    }
    same = run / "steps" / f"{best:07}"
    assert all(torch.equal(weight, weights[same][name]) for name, weight in weights[run].items())
    other = run / "steps" / f"{3 - best:07}"
    assert not all(torch.equal(weight, weights[other][name]) for name, weight in weights[run].items())
    assert lab.load(str(same)).ask("12 + 34") == lab.load(str(run)).ask("12 + 34")


@pytest.mark.slow
def test_a_bias_of_places_learns_at_a_rate_of_its_own(arguments, tmp_path):
    swap = ["parts.same_place={}", "format.reverse=total", "training.bias_learning_rate=0.5"]
    main(arguments(*swap, "data.tasks=[add_integer]"))
    trained = load_file(tmp_path / "run" / "model" / "adapter_model.safetensors")
    biases = [weight for name, weight in trained.items() if "same_place" in name]
    others = [weight for name, weight in trained.items() if "lora_B" in name]  # begin at zero as well
    assert len(biases) == 1
    assert biases[0].abs().max() > 100 * max(weight.abs().max() for weight in others) > 0


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["parts.place_embeddings.places=8"], "format.reverse"),
        (["parts.same_place={}", "format.reverse=each"], "format.reverse=total"),
        (["parts.same_place={}", "format.reverse=total", "tokenizer.digits={kind: k_digit}"], "one digit a token"),
        (["parts.coupled={}"], "format.reverse=total"),
        (["parts={coupled: {}, same_place: {}}", "format.reverse=total"], "includes the bias"),
        (["parts.coupled.layers=[0, 2]", "format.reverse=total"], "no layer 2; the model"),
        (["parts.coupled.layers=[1, 0]", "format.reverse=total"], "[first, last]"),
        (["parts.coupled={far: seen, layers: [0, 1]}", "format.reverse=total"], "far=seen hides no digits"),
        (["parts.coupled.far_at_most=9", "format.reverse=total"], "needs far=seen"),
        (["parts={coupled: {}, walk: {heads: 1}}", "format.reverse=total"], "format.reverse=none"),
        ([WALKS.replace("1", "5"), *AS_WRITTEN], "parts.walk.heads=5: each layer of the model has 4"),
        ([WALKS.replace("1", "1, layers: [0, 2]"), *AS_WRITTEN], "walk.layers=[0, 2]: there is no layer 2"),
        (["parts.coupled.words=last", *AS_WRITTEN], "ones digit first: use nearest"),
        (
            ["parts.coupled={}", *AS_WRITTEN, "data.tasks=[add_integer, add_fraction, to_scient_integer]"],
            "leave add_fraction, to_scient_integer out",
        ),
        (["parts.walk.heads=1", *AS_WRITTEN], "parts.walk needs parts.coupled"),
        (["parts.walk.loss_weight=0.1", *AS_WRITTEN], "parts.walk.heads: missing"),
        (["parts.even_spacing={}", *AS_WRITTEN], "parts.even_spacing needs parts.coupled"),
        (["parts={nope: {}, alibi: {}}"], "leave parts.coupled and parts.nope out"),
        (["parts={nope: {}, coupled: {}}", "format.reverse=total"], "leave parts.nope out"),
        (["data.variation.nines=0.5", "data.tasks=[max_integer]"], "one of add_integer, sub_integer, add_float"),
        (["data.templates=many", "data.tasks=[sub_integer]"], "data.tasks=[add_integer]"),
        (["data.example_number=drawn", "data.tasks=[add_integer, add_float]"], "direct answers that are integers"),
        (["data.passages=0.5", "data.style=rule_following"], "data.passages needs direct answers"),
        (["training.replay={tokens: 16, every: 17}"], "training.replay.every: every=17 should be at most tokens=16"),
        (
            ["parts.place_embeddings.places=8", "format.reverse=integer", "training.replay={tokens: 16, every: 4}"],
            "parts.place_embeddings.places=8: text of data.passages and training.replay has numbers of",
        ),
        (["format.index_hints=both", "tokenizer.digits={kind: k_digit}"], "one_digit"),
        (["data.style=rule_following", "format.reverse=integer"], "plain numbers"),
        (["format.pad=all", "data.tasks=[add_scientific, sig_integer]"], "pad=all"),
    ],
)
def test_swaps_that_cannot_be_are_one_line_before_anything_is_written(arguments, keys, said, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments(*keys))
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not (tmp_path / "run").exists()


def test_activations_that_are_computed_again_change_no_loss(arguments, tmp_path):
    for name, again in (("kept", "false"), ("again", "true")):
        main([*arguments(f"training.gradient_checkpointing={again}"), f"name={name}"])
    kept, again = (records(tmp_path / name / "metrics.jsonl") for name in ("kept", "again"))
    assert [row.get("loss") for row in kept] == [row.get("loss") for row in again]
    assert any(row.get("loss") for row in kept)


def test_a_chat_model_is_tuned_and_tested_through_its_template(arguments, tmp_path, toy_model):
    chat = tmp_path / "chat"
    shutil.copytree(toy_model, chat)
    template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
    (chat / "chat_template.jinja").write_text(template)
    main([*arguments("data.style=chat"), f"model.name={chat}"])
    sample = records(tmp_path / "run" / "samples_after.jsonl")[0]
    assert sample["prompt"][0]["role"] == "user"
    with pytest.raises(SystemExit):
        main([*arguments("data.style=chat"), "name=raw"])  # the toy has no template
    assert not (tmp_path / "raw").exists()
