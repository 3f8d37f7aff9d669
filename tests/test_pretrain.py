import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from lab.ask import main as ask
from lab.config.loading import load
from lab.config.pretraining import PretrainConfig
from lab.errors import LabWarning
from lab.pretrain import ignored_keys, main
from tests.records import records

ROOT = Path(__file__).parents[1]
SMALL = [
    "model.size=0.2M",
    "data.lengths=[1, 4]",
    "training.max_steps=4",
    "training.batch_size=8",
    "training.micro_batch_size=4",
    "training.log_every=1",
    "training.evaluate_every=2",
    "training.valid_problems=8",
    "training.warmup_steps=1",
    "evaluation.lengths=[1, 4, 6]",
    "evaluation.problems_per_length=4",
    "evaluation.while_training=[4]",
    "evaluation.problems_while_training=3",
]

GRID = ["parts={grid_ids: {}, relative_keys: {}, window: {reach: 2}}", "evaluation.while_training=[]"]
TOTALS = [*GRID, "data.style=running_totals", "data.tasks=[sum_integers, multiply_hard_integer]"]
AS_WRITTEN = ["format.reverse=none", "format.pad=answer", "format.carry_place=true", "parts.relative_keys={}"]
COUNTED = ["uses=[experiments.parts.counted_ids]", "parts.counted_ids={}", *AS_WRITTEN]
COUNTDOWN = ["parts.countdown_ids.largest=16", *AS_WRITTEN]
COUPLED = ["parts.learned_ids={}", "parts.coupled_ids={}", "format.reverse=integer"]


def run(tmp_path, *more: str) -> Path:
    main([str(ROOT / "configs" / "scratch_add.yaml"), *SMALL, f"output={tmp_path}", "name=run", *more])
    return tmp_path / "run"


def test_a_run_leaves_a_model_its_curves_and_the_samples_they_stand_on(tmp_path, capsys):
    path = run(tmp_path)
    printed = capsys.readouterr().out
    assert "198,016 parameters without embeddings" in printed
    assert "GFLOP/s of bare matrix products" in printed.replace("\n", " ")
    assert (path / "status").read_text() == "finished\n"
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {part.name for part in (path / "model").iterdir()}
    assert not (path / "checkpoints").exists()
    samples = records(path / "samples.jsonl")
    assert [sample["length"] for sample in samples] == [1] * 4 + [4] * 4 + [6] * 4
    assert all(sample["prompt"].endswith(" =") for sample in samples)
    curves = json.loads((path / "summary.json").read_text())["lengths"]["add_integer"]
    assert list(curves) == ["1", "4", "6"]
    right = [sample["exact_match"] for sample in samples if sample["length"] == 4]
    assert curves["4"]["exact_match"]["value"] == sum(right) / 4
    assert [(row["samples"], row["length"]) for row in records(path / "curve.jsonl")] == [(16, 4), (32, 4)]
    assert (path / "table.md").read_text().count("| add_integer |") == 3
    assert (path / "figures" / "lengths.png").stat().st_size > 10_000
    assert (path / "figures" / "training.png").stat().st_size > 10_000
    assert json.loads((path / "throughput.json").read_text())["samples"] > 0

    from lab.models import loading

    left = loading.load_scratch(path)
    assert left.config.data.lengths == (1, 4)
    assert left.notation.vocabulary == left.model.config.vocabulary
    assert left.tokenizer.encode("1 2")[0] == left.model.config.bos_token_id


IGNORED = "data.variation.short_second=0.2 has no effect: it shortens numbers only in add_integer, sub_integer"


@pytest.mark.parametrize(
    ("tasks", "told"),
    [
        (["max_integer"], True),
        (["digit_max_integer", "multiply_easy_integer"], True),
        (["max_integer", "add_float"], False),
    ],
)
def test_a_share_of_short_numbers_that_no_task_has_is_said_to_have_no_effect(tasks, told):
    config = load(PretrainConfig, ROOT / "configs" / "scratch_add.yaml", [f"data.tasks={json.dumps(tasks)}"])
    assert (IGNORED in ignored_keys(config)) == told
    assert not ignored_keys(load(PretrainConfig, ROOT / "configs" / "many_tasks.yaml", []))


@pytest.mark.slow
def test_a_run_on_another_task_says_that_its_share_of_short_numbers_has_no_effect(tmp_path, capsys):
    run(tmp_path, "data.tasks=[max_integer]")
    assert IGNORED in capsys.readouterr().out


@pytest.mark.slow
def test_the_model_of_each_validation_is_kept_and_opened_like_a_run(tmp_path):
    path = run(tmp_path, "training.keep_steps=true")
    from lab.models import loading

    assert sorted(folder.name for folder in (path / "steps").iterdir()) == ["0000002", "0000004"]
    kept = records(path / "training_times.jsonl")[-1]["kept_step"]
    best = loading.load_scratch(path / "steps" / f"{kept:07}").model.state_dict()
    first = loading.load_scratch(path / "steps" / "0000002").model.state_dict()
    last = loading.load_scratch(path / "steps" / "0000004").model.state_dict()
    final = loading.load_scratch(path).model.state_dict()
    assert all(torch.equal(best[name], final[name]) for name in final)
    assert not all(torch.equal(first[name], last[name]) for name in final)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_a_compiled_run_has_the_losses_and_answers_of_one_that_is_not(tmp_path):
    local = [*COUPLED, "parts.coupled_ids.largest=64", "parts.locality.slope=1", "model.dtype=float32"]
    plain, compiled = run(tmp_path / "plain", *local), run(tmp_path / "compiled", *local, "training.compile=true")
    for row, again in zip(records(plain / "metrics.jsonl"), records(compiled / "metrics.jsonl"), strict=True):
        assert again == pytest.approx(row, rel=1e-4)
    answers = [[sample["text"] for sample in records(path / "samples.jsonl")] for path in (plain, compiled)]
    assert answers[0] == answers[1]


@pytest.mark.slow
def test_the_loss_of_a_step_is_the_mean_over_its_answers_however_it_is_cut(tmp_path):
    first = run(tmp_path / "whole", "model.dtype=float32", "training.micro_batch_size=8")
    second = run(tmp_path / "parts", "model.dtype=float32", "training.micro_batch_size=2")
    for whole, parts in zip(records(first / "metrics.jsonl"), records(second / "metrics.jsonl"), strict=True):
        if "loss" in whole:
            assert parts["loss"] == pytest.approx(whole["loss"], rel=1e-4)
            assert parts["grad_norm"] == pytest.approx(whole["grad_norm"], rel=1e-3)


DRAWN = ["tokenizer.kind=random", "tokenizer.digits=2", "data.packing=2", "format.reverse=integer"]
DRAWN += ["parts={coupled_ids: {largest: 64}, learned_ids: {}, segments: {}}", "training.micro_batch_size=4"]
WALKING = [*COUNTED, "parts.locality.slope=4", "parts.stick_breaking={heads: 2, downward: 2}"]


@pytest.mark.slow
@pytest.mark.parametrize("drawn", [DRAWN, WALKING], ids=["drawn ids", "counted places"])
def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(tmp_path, monkeypatch, drawn):
    """With random groups and drawn positions, nothing that is drawn may depend on where a run was cut."""
    whole = run(tmp_path / "whole", *drawn)

    from lab.tune import callbacks

    class Killed(BaseException):
        pass

    def stop(self, args, state, control, **kwargs):
        if state.global_step == 3:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(callbacks.TrainingProgress, "on_step_end", stop)
        with pytest.raises(Killed):
            run(tmp_path / "cut", *drawn)
    assert (tmp_path / "cut" / "run" / "status").read_text() == "running\n"
    cut = run(tmp_path / "cut", *drawn, "resume=true")
    for name in ("metrics.jsonl", "curve.jsonl", "summary.json", "model/model.safetensors", "table.md"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["parts.abacus_ids={}"], "abacus_ids gives places, not order: use parts.learned_ids"),
        (["parts.stick_breaking={}"], "stick_breaking needs positions that do not rotate: parts.relative_keys"),
        (["parts={nope: {}, stick_breaking: {heads: 5}}"], "stick_breaking.heads=5: each layer of the model has 4"),
        (["parts={nope: {}, stick_breaking: {downward: 2}}"], "but only parts.stick_breaking.heads=1 heads can walk"),
        (["parts={nope: {}, stick_breaking: {downward: 1}}"], "stick_breaking.downward needs parts.countdown_ids"),
        ([*COUNTED, "parts.window={}"], "counted_ids learns by gradients"),
        ([*COUNTED, "data.packing=2"], "counted_ids needs data.packing=1"),
        (["parts.countdown_ids={}"], "use format.reverse=none and format.carry_place=true"),
        (["format.carry_place=true"], "carry_place needs pad=answer or all, not none"),
        (["parts={nope: {}, clipped_distances: {}}"], "clipped_distances works only with RoPE, not with parts.nope"),
        (["parts={learned_ids: {}, far_digits: {}}"], "it needs parts.coupled_ids or parts.abacus_ids"),
        ([*COUPLED, "parts.far_digits={}", "data.packing=2"], "and data.packing=1"),
        (["parts={coupled_ids: {}, countdown_ids: {}}", *AS_WRITTEN], "both decide position ids"),
        (["parts.coupled={}"], "parts.coupled is not for models from scratch"),
        (["parts.locality.slope=-1"], "greater than or equal to 0"),
        (["parts.locality.slope=[1, 1, 0]"], "locality.slope has 3 slopes, and the model has 4 heads"),
        (["model.encoding=rope"], "model.encoding"),
        (["data.factor_digits=1"], "factor_digits needs multiply_easy_integer"),
        (["model.size=70B"], "should be one of 0.2M, 0.4M"),
        (["data.packing=3"], "data.packing=3 should divide training.micro_batch_size=4"),
        (["data.lengths=[4, 1]"], "should be [shortest, longest]"),
        (["data.tasks=[max_integer]", "data.variation.carries=0.5"], "variation needs one of add_integer"),
        (["evaluation.lengths=[]"], "evaluation.lengths should name at least one length"),
        (["evaluation.lengths=[3, 3]"], "none twice"),
        ([*COUPLED, "parts.coupled_ids.largest=8", "data.packing=4"], "parts.coupled_ids.largest should be at least"),
        ([*COUPLED, "parts.coupled_ids.largest=8"], "wrap around the 8 ids of parts.coupled_ids, so that places"),
        (
            [*COUNTDOWN, "parts.stick_breaking={heads: 1, downward: 1}"],
            "of 7 digits wrap around the 16 ids of parts.countdown_ids, so that places would be mixed up",
        ),
        ([*COUPLED, "parts.coupled_ids.through_point=true"], "its end: use format.reverse=total and format.pad=all"),
        ([*COUPLED, "format.reverse=none"], "so digits of the same place only get the same count"),
        (["parts={nope: {}, coupled_ids: {}}", "format.reverse=integer"], "nope ignores position ids"),
        (["parts.learned_ids.largest=5"], "`largest` above"),
        (GRID, "parts.grid_ids needs data.style=running_totals"),
        ([*TOTALS, "data.packing=2"], "data.style=running_totals needs data.packing=1"),
        (["data.operands=[2, 4]"], "operands needs sum_integers among data.tasks"),
        ([*TOTALS, "parts.relative_keys=null"], "it needs parts.relative_keys and no stick_breaking"),
        ([*TOTALS, "parts.far_digits={}"], "it needs parts.coupled_ids or parts.abacus_ids"),
        ([*TOTALS, "data.operands=[1, 4]"], "should be [fewest, most], from 2 up"),
        ([*TOTALS, "data.tasks=[add_float]"], "add_float has no running totals"),
        (["data.tasks=[sum_integers]"], "sum_integers needs style=running_totals"),
        (["format.index_hints=both", "format.largest_hint=3"], "format.largest_hint"),
        (["data.tasks=[sig_integer, add_scientific]", "format.pad=all"], "format.pad"),
    ],
)
def test_what_cannot_be_trained_is_one_line_and_nothing_is_written(tmp_path, capsys, overrides, message):
    with pytest.raises(SystemExit) as stopped:
        run(tmp_path, *overrides)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_resumed_run_may_answer_in_batches_of_another_size_with_the_same_result(tmp_path):
    path = run(tmp_path)
    summary = (path / "summary.json").read_bytes()
    texts = [sample["text"] for sample in records(path / "samples.jsonl")]
    (path / "samples.jsonl").write_text((path / "samples.jsonl").read_text().partition("\n")[0] + "\n")
    run(tmp_path, "resume=true", "evaluation.batch_size=3")
    assert [sample["text"] for sample in records(path / "samples.jsonl")] == texts
    assert (path / "summary.json").read_bytes() == summary
    with pytest.raises(SystemExit):
        run(tmp_path, "resume=true", "evaluation.problems_per_length=3")


@pytest.mark.slow
def test_a_run_without_its_model_is_trained_anew_and_a_finished_one_is_shown(tmp_path):
    path = run(tmp_path)
    before = (path / "model" / "model.safetensors").read_bytes()
    shutil.rmtree(path / "model")
    run(tmp_path, "resume=true")
    assert (path / "model" / "model.safetensors").read_bytes() == before


def not_finite(where: str):
    """A loss that is not a number from the third step on, or only in validation, or only in its gradient (`where`)."""
    from lab.tune.sequences import sequence_loss

    calls = []

    def loss(model, inputs):
        total = sequence_loss(model, inputs)
        calls.append(model.training)
        if where == "norm of the gradient" and sum(calls) > 4:  # adds zero, with a gradient that is not finite
            return total + (model.lm_head.weight.sum() * 0).sqrt()
        broken = not model.training if where == "validation loss" else sum(calls) > 4
        return total * (float("nan") if broken and where != "norm of the gradient" else 1)

    return loss


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "step", "good"),
    [
        ("loss", 3, "the last good checkpoint is .*checkpoint-2"),
        ("norm of the gradient", 3, "the last good checkpoint is .*checkpoint-2"),
        ("validation loss", 2, "there is no checkpoint yet"),
    ],
)
def test_a_loss_that_is_no_number_ends_the_run_at_that_step_in_one_line(
    tmp_path, capsys, monkeypatch, where, step, good
):
    monkeypatch.setattr("lab.tune.from_scratch.sequence_loss", not_finite(where))
    monkeypatch.setattr("lab.tune.from_scratch.check_memory", lambda *_: None)  # it computes losses, too
    with pytest.raises(SystemExit) as stopped:
        run(tmp_path, "model.dtype=float32")
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert re.match(rf"error: the training diverged: {where} nan at step {step}, learning rate \S+; {good}", error)
    assert error.count("\n") == 1
    assert (tmp_path / "run" / "status").read_text() == "failed\n"
    assert max(row["step"] for row in records(tmp_path / "run" / "metrics.jsonl")) == 2


@pytest.mark.slow
def test_a_disk_that_is_full_at_a_checkpoint_is_one_line_and_the_run_goes_on(tmp_path, capsys, monkeypatch):
    import torch

    def full(*arguments, **settings):
        raise RuntimeError("[enforce fail at inline_container.cc:664] .\nunexpected pos 64 vs 0")

    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", full)
        with pytest.raises(SystemExit) as stopped:
            run(tmp_path)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert "the checkpoint of step 2 cannot be written" in error
    assert "resume=true continues from the last checkpoint" in error
    assert error.count("\n") == 1
    assert (run(tmp_path, "resume=true") / "status").read_text() == "finished\n"


@pytest.mark.slow
def test_a_model_that_follows_rules_is_measured_with_its_tokens(tmp_path):
    followed = ["data.style=rule_following", "data.rules.detail=bare", "format.reverse=integer"]
    path = run(tmp_path, *followed, "evaluation.lengths=[4]")
    points = records(path / "curve.jsonl")
    assert [(row["step"], row["length"]) for row in points] == [(2, 4), (4, 4)]
    assert all(row["tokens"] > 0 for row in points)
    samples = records(path / "samples.jsonl")
    assert all(re.search(r"<add_integer> .* =$", sample["prompt"]) for sample in samples)

    from lab.models import loading
    from lab.text.rule_notation import RuleNotation

    notation = loading.load_scratch(path).notation
    assert isinstance(notation, RuleNotation)
    assert notation.rules.detail == "bare"


@pytest.mark.slow
def test_a_run_with_running_totals_goes_on_and_is_asked_about_sums_of_as_many_terms_as_digits(tmp_path, capsys):
    path = run(tmp_path, *TOTALS, "training.max_steps=2")
    sums = [sample for sample in records(path / "samples.jsonl") if "<sum_integers>" in sample["prompt"]]
    assert [sample["prompt"].count("<sum_integers>") for sample in sums] == [2] * 4 + [4] * 4 + [6] * 4
    assert run(tmp_path, *TOTALS, "training.max_steps=2", "resume=true") == path
    asked = ["sum_integers 12+3+45", "12 + 3 + 45", "12 * 34"]
    for question in asked:
        ask([str(path), question])
    printed = capsys.readouterr().out
    assert printed.count("60 is right") == 2
    assert "408 is right" in printed


def test_a_warm_up_as_long_as_the_training_is_noted(tmp_path):
    with pytest.warns(LabWarning, match="warmup_steps=2 with training.max_steps=2: the learning rate never"):
        run(tmp_path, "training.max_steps=2", "training.warmup_steps=2")
