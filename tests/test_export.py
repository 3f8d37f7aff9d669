import json
import shutil
from typing import Any

import huggingface_hub
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import lab
from lab.ask import main as ask
from lab.config.schema import ModelConfig
from lab.engines.local import LocalEngine
from lab.export import main
from lab.finetune import main as finetune
from lab.models import loading, sources
from tests.test_finetune import ROOT
from tests.test_pretrain import run as pretrained

PROMPT = "Add two numbers: 12 + 34 ="


@pytest.fixture(scope="module")
def tuned(toy_model, tmp_path_factory):
    """Runs of two steps on a toy model, by what they swap."""
    folder = tmp_path_factory.mktemp("runs")

    def build(name, *more):
        finetune(
            [
                str(ROOT / "configs" / "smollm2_lora.yaml"),
                f"model.name={toy_model}",
                "model.device=cpu",
                f"output={folder}",
                f"name={name}",
                "adapter.rank=2",
                "data.tasks=[add_integer]",
                "data.lengths={hard: [1, 3], easy: [1, 5]}",
                "training.max_steps=2",
                "training.batch_size=4",
                "training.micro_batch_size=2",
                "training.log_every=1",
                "training.evaluate_every=2",
                "training.warmup_steps=1",
                "training.learning_rate=0.02",
                "training.valid_problems=4",
                "evaluation.problems_per_range=2",
                "evaluation.lengths={hard: [3, 3], easy: [5, 5]}",
                *more,
            ]
        )
        return folder / name

    return {"plain": build("plain"), "coupled": build("coupled", "parts.coupled={}", "format.reverse=answer")}


def logits(model, tokenizer):
    with torch.inference_mode():
        return model(input_ids=tokenizer(PROMPT, return_tensors="pt").input_ids).logits


def opened(run):
    model, tokenizer = loading.load(ModelConfig(name=str(run), dtype="float32", device="cpu"))
    return logits(model, tokenizer)


@pytest.mark.slow
def test_a_merged_model_computes_the_same_without_the_lab(tuned, tmp_path, capsys):
    out = tmp_path / "out"
    main([str(tuned["plain"]), str(out), "dtype=float32"])
    assert "merged, float32" in capsys.readouterr().out
    found = logits(AutoModelForCausalLM.from_pretrained(out), AutoTokenizer.from_pretrained(out))
    torch.testing.assert_close(found, opened(tuned["plain"]))


@pytest.mark.slow
def test_what_was_tuned_beside_quantized_weights_is_exported_as_a_whole_model(tuned, toy_model, tmp_path):
    """A run in nf4 opens with its adapters beside the weights; nothing can be merged into those."""
    out, run = tmp_path / "out", tmp_path / "nf4"
    shutil.copytree(tuned["plain"], run)
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("quantization: none", "quantization: nf4"))
    main([str(run), str(out), "dtype=float32"])
    found = logits(AutoModelForCausalLM.from_pretrained(out), AutoTokenizer.from_pretrained(out))
    torch.testing.assert_close(found, opened(tuned["plain"]))


def test_training_had_changed_the_model(tuned, toy_model):
    assert (opened(tuned["plain"]) - opened(toy_model)).abs().max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 1e-2), ("bfloat16", 0.1)])
def test_a_rounded_model_computes_nearly_the_same(tuned, tmp_path, dtype, tolerance):
    out = tmp_path / "out"
    main([str(tuned["plain"]), str(out), f"dtype={dtype}"])
    found = logits(AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32), AutoTokenizer.from_pretrained(out))
    torch.testing.assert_close(found, opened(tuned["plain"]), atol=tolerance, rtol=tolerance)


@pytest.mark.slow
def test_a_merged_model_answers_as_the_run_does(tuned, tmp_path):
    """At most one of 100 answers may differ."""
    main([str(tuned["plain"]), str(tmp_path / "out"), "dtype=float32"])
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    run = lab.load(str(tuned["plain"]), device="cpu")
    requests = run.benchmark(lab.problems("add_integer", 3, n=100)).requests(run.engine.count_tokens)
    found, expected = (
        {index: done.text for batch in engine.generate(requests) for index, done in batch.items()}
        for engine in (LocalEngine(model, tokenizer, batch_size=128), run.engine)
    )
    assert len(expected) == 100
    assert len(set(expected.values())) > 10
    assert sum(found[index] != text for index, text in expected.items()) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "coupled"])
def test_adapters_alone_open_by_the_name_of_their_base_model(tuned, toy_model, tmp_path, name):
    out = tmp_path / "out"
    main([str(tuned[name]), str(out), "to=adapter", "dtype=float32"])
    torch.testing.assert_close(opened(out), opened(tuned[name]))
    assert str(toy_model) in (out / "adapter_config.json").read_text()
    assert lab.load(str(out)).ask("12 + 34") == lab.load(str(tuned[name])).ask("12 + 34")


@pytest.fixture
def embedded(tuned, toy_model, tmp_path, monkeypatch):
    """The runs of `tuned` as if their base were an embedded model that the hub knows as Owner/Toy."""
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))
    shutil.copytree(toy_model, tmp_path / "cache" / "toy")
    monkeypatch.setitem(sources.EMBEDDED, "toy", sources.Embedded("toys==1", "", "toys/Toy.Q4_1.gguf", "Owner/Toy"))
    runs = {name: shutil.copytree(run, tmp_path / "runs" / name) for name, run in tuned.items()}
    for run in runs.values():
        config = (run / "config.yaml").read_text()
        assert str(toy_model) in config
        (run / "config.yaml").write_text(config.replace(str(toy_model), "toy"))
    return runs


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "coupled"])
def test_adapters_on_an_embedded_model_name_the_hubs_and_open_without_a_hub(embedded, tuned, tmp_path, name):
    main([str(embedded[name]), str(tmp_path / "out"), "to=adapter", "dtype=float32"])
    assert json.loads((tmp_path / "out" / "adapter_config.json").read_text())["base_model_name_or_path"] == "Owner/Toy"
    torch.testing.assert_close(opened(tmp_path / "out"), opened(tuned[name]))


def test_adapters_that_name_the_hubs_model_alone_are_not_opened_on_the_embedded_one(embedded, tmp_path):
    """They may have been trained on weights that were not rounded."""
    main([str(embedded["plain"]), str(tmp_path / "out"), "to=adapter"])
    assert sources.base_of(tmp_path / "out") == "toy"
    (tmp_path / "out" / "base.json").unlink()
    assert sources.base_of(tmp_path / "out") == "Owner/Toy"


@pytest.mark.slow
def test_the_card_of_adapters_shows_how_peft_loads_them_and_that_computes_the_same(tuned, toy_model, tmp_path):
    main([str(tuned["plain"]), str(tmp_path / "out"), "to=adapter", "dtype=float32"])
    card = (tmp_path / "out" / "README.md").read_text()
    shown = next(block for block in card.split("```python\n")[1:] if "peft" in block).partition("```")[0]
    assert str(toy_model) in shown
    made: dict[str, Any] = {}
    exec(shown.replace('"out"', repr(str(tmp_path / "out"))), made)
    torch.testing.assert_close(logits(made["model"].eval(), made["tokenizer"]), opened(tuned["plain"]))


def test_the_card_of_adapters_on_an_embedded_model_says_what_the_lab_tuned(embedded, tmp_path):
    main([str(embedded["plain"]), str(tmp_path / "out"), "to=adapter"])
    card = (tmp_path / "out" / "README.md").read_text()
    assert 'AutoModelForCausalLM.from_pretrained("Owner/Toy")' in card
    assert 'PeftModel.from_pretrained(base, "out")' in card
    assert "Toy.Q4_1.gguf of toys==1, dequantized" in card
    assert "Only the lab computes" not in card


def test_the_card_of_adapters_with_parts_says_that_only_the_lab_computes_them(embedded, tmp_path):
    main([str(embedded["coupled"]), str(tmp_path / "out"), "to=adapter"])
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Only the lab computes this model" in card
    assert "PeftModel" not in card


def test_the_embedded_model_has_a_name_on_the_hub():
    assert sources.hub_name("smollm2-135m-instruct") == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert [sources.hub_name(name) for name in ("gpt2", "./folder")] == ["gpt2", "./folder"]


def test_the_command_ask_says_when_a_model_writes_ones_digit_first(tuned, capsys):
    ask([str(tuned["coupled"]), "Two and two are", "device=cpu"])
    told = capsys.readouterr().out
    assert "ones digit first: 579 is 975" in told or "(the number is " in told
    assert "whatever is asked" in told
    ask([str(tuned["plain"]), "Two and two are", "device=cpu"])
    assert "ones digit first" not in capsys.readouterr().out


def test_the_card_says_how_to_open_and_to_ask_the_model(tuned, tmp_path):
    main([str(tuned["coupled"]), str(tmp_path / "out"), "to=adapter"])
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("# ")
    assert "answers come ones digit first: 579 is 975" in card
    assert 'lab.load("out")' in card
    assert "| add | integer |" in card
    assert "coupled:" in card
    assert str(tmp_path) not in card
    assert str(tuned["coupled"].parent) not in card


def test_what_is_exported_into_a_zoo_is_opened_by_its_name_there(tuned, tmp_path):
    main([str(tuned["plain"]), str(tmp_path / "zoo" / "small"), "to=adapter"])
    assert 'lab.load("zoo/small")' in (tmp_path / "zoo" / "small" / "README.md").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{coupled}", "out", "to=merged"], "use to=adapter"),
        (["{plain}"], "give a run and a new folder"),
        (["{plain}", "."], "exists already"),
        (["{plain}", "{plain}/status/out"], "status/out: Not a directory"),
        (["nowhere", "out"], "nowhere: not a run of lab finetune, lab pretrain or lab adder train"),
        (["{plain}", "out", "to=gguf"], "to"),
        (["{plain}", "out", "push=adds"], "push"),
        (["nowhere", "out", "to=data"], "to=data needs a run or a config of lab finetune"),
        (["packing", "out", "to=data"], "to=data needs a run or a config of lab finetune"),
        (["{plain}", "out", "to=scratch"], "a model tuned is exported with to=merged or adapter"),
    ],
)
def test_what_cannot_be_exported_is_one_line_and_leaves_nothing(tuned, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main([word.format(**tuned) for word in words])
    told = capsys.readouterr().err
    assert (stopped.value.code, told.count("\n")) == (2, 1)
    assert message in told
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 0), ("bfloat16", 0.05)])
def test_a_model_from_scratch_computes_the_same_when_it_is_opened_from_its_folder(tmp_path, capsys, dtype, tolerance):
    path, out = pretrained(tmp_path), tmp_path / "zoo" / "adds"
    main([str(path), str(out), f"dtype={dtype}"])
    assert f"scratch, {dtype}" in capsys.readouterr().out
    made, opened_again = loading.load_scratch(path), loading.load_scratch(out)
    assert opened_again.model.dtype == torch.float32
    ids = torch.arange(len(made.tokenizer))[None]
    found, expected = (run.model(input_ids=ids).logits for run in (opened_again, made))
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=0)
    assert lab.load(str(out)).ask("12 + 34") is not None


@pytest.mark.slow
def test_the_card_of_a_model_from_scratch_says_what_it_is(tmp_path):
    path = pretrained(tmp_path)
    main([str(path), str(tmp_path / "out")])
    model = loading.load_scratch(path).model
    first, _, what = (tmp_path / "out" / "README.md").read_text().splitlines()[:3]
    assert first == "# 1 layer trained from scratch on add_integer, 1-4 digits"
    assert f"{sum(weights.numel() for weights in model.parameters()):,} parameters" in what


def rows(folder):
    return [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]


def test_the_training_data_of_a_run_is_written_in_the_order_in_which_it_was_trained_on(tuned, tmp_path, capsys):
    from lab.config.finetuning import FinetuneConfig
    from lab.config.loading import load
    from lab.text.wording import Wording
    from lab.tune.problem_sets import training_sets

    main([str(tuned["plain"]), str(tmp_path / "sums"), "to=data"])
    assert "8 samples" in capsys.readouterr().out
    config = load(FinetuneConfig, tuned["plain"] / "config.yaml", [])
    tokenizer = AutoTokenizer.from_pretrained(config.model.name)
    sets = training_sets(config, Wording(), tokenizer)
    for row, trained in zip(rows(tmp_path / "sums"), sets.train.examples, strict=True):
        assert row["prompt"] == tokenizer.decode(trained["prompt_ids"])
        assert row["completion"] == tokenizer.decode(trained["completion_ids"][:-1])
    about = json.loads((tmp_path / "sums" / "dataset_info.json").read_text())
    assert about == {"sums": {"file_name": "train.jsonl", "columns": {"prompt": "prompt", "response": "completion"}}}
    card = (tmp_path / "sums" / "README.md").read_text()
    assert "# sums: 8 problems of number understanding to train on" in card
    assert str(tmp_path) not in card


@pytest.mark.slow
def test_the_training_data_of_a_config_needs_no_run(tmp_path):
    main(["smollm2_graft", str(tmp_path / "data"), "to=data"])
    found = rows(tmp_path / "data")
    assert len({row["prompt"] for row in found}) > 1000
    assert all(row["completion"].startswith(" ") for row in found)


@pytest.mark.slow
def test_plain_sfttrainer_takes_a_step_on_the_training_data(tuned, toy_model, tmp_path):
    from datasets import load_dataset
    from trl import SFTConfig, SFTTrainer

    main([str(tuned["plain"]), str(tmp_path / "sums"), "to=data"])
    data = load_dataset(str(tmp_path / "sums"), split="train", cache_dir=str(tmp_path / "cache"))
    settings = SFTConfig(
        output_dir=str(tmp_path / "out"), max_steps=1, per_device_train_batch_size=4, use_cpu=True, bf16=False,
        report_to="none", logging_steps=1,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_pretrained(toy_model)
    trainer = SFTTrainer(model, settings, train_dataset=data, processing_class=AutoTokenizer.from_pretrained(toy_model))
    batch = next(iter(trainer.get_train_dataloader()))
    counted = batch["labels"] != -100
    assert 0 < counted.sum() < counted.numel() / 2  # the answers alone
    before = model.model.layers[0].mlp.up_proj.weight.clone()
    trainer.train()
    assert (model.model.layers[0].mlp.up_proj.weight != before).any()


class Hub:
    """Stands in for the hub's client and records what is asked of it."""

    asked: list = []  # noqa: RUF012

    def create_repo(self, name, **options):
        self.asked.append(("create", name, options))

    def upload_folder(self, **options):
        self.asked.append(("upload", options["repo_id"], options))


def test_push_puts_a_model_and_a_dataset_on_the_hub(tuned, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(huggingface_hub, "whoami", lambda: {"name": "me"})
    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    for to, kind in (("adapter", "model"), ("data", "dataset")):
        monkeypatch.setattr(Hub, "asked", [])
        main([str(tuned["plain"]), str(tmp_path / to), f"to={to}", "push=me/adds"])
        assert Hub.asked == [
            ("create", "me/adds", {"repo_type": kind, "private": True, "exist_ok": True}),
            ("upload", "me/adds", {"repo_id": "me/adds", "repo_type": kind, "folder_path": tmp_path / to}),
        ]
        assert "pushed to me/adds" in capsys.readouterr().out


def refused(*words):
    raise OSError("Token is required\nbut no token found")


def test_a_push_without_a_login_is_refused_before_anything_is_written(tuned, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(huggingface_hub, "whoami", refused)
    with pytest.raises(SystemExit) as stopped:
        main([str(tuned["plain"]), str(tmp_path / "out"), "push=me/adds"])
    told = capsys.readouterr().err
    assert (stopped.value.code, told.count("\n")) == (2, 1)
    assert "the hub does not know you; run `hf auth login`" in told
    assert not list(tmp_path.iterdir())


def test_a_push_that_fails_leaves_the_folder_and_says_how_to_go_on(tuned, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(huggingface_hub, "whoami", lambda: {"name": "me"})
    monkeypatch.setattr(Hub, "upload_folder", lambda self, **options: refused())
    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    with pytest.raises(SystemExit):
        main([str(tuned["plain"]), str(tmp_path / "out"), "to=adapter", "push=me/adds"])
    assert f"`hf upload me/adds {tmp_path / 'out'} --repo-type model` tries again" in capsys.readouterr().err
    assert (tmp_path / "out" / "README.md").is_file()
