import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import lab
from lab.ask import main as ask
from lab.config.schema import ModelConfig
from lab.export import main
from lab.finetune import main as finetune
from lab.models import loading
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

    return {
        "plain": build("plain"),
        "coupled": build("coupled", "positions.kind=coupled", "format.reverse=answer", "training.share_prefixes=false"),
    }


def logits(model, tokenizer):
    with torch.inference_mode():
        return model(input_ids=tokenizer(PROMPT, return_tensors="pt").input_ids).logits


def opened(run):
    model, tokenizer = loading.load(ModelConfig(name=str(run), dtype="float32", device="cpu"))
    return logits(model, tokenizer)


def test_a_merged_model_computes_the_same_without_the_lab(tuned, tmp_path, capsys):
    out = tmp_path / "out"
    main([str(tuned["plain"]), str(out), "dtype=float32"])
    assert "merged, float32" in capsys.readouterr().out
    found = logits(AutoModelForCausalLM.from_pretrained(out), AutoTokenizer.from_pretrained(out))
    torch.testing.assert_close(found, opened(tuned["plain"]))


def test_training_had_changed_the_model(tuned, toy_model):
    assert (opened(tuned["plain"]) - opened(toy_model)).abs().max() > 0.1


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float16", 1e-2), ("bfloat16", 0.1)])
def test_a_gguf_file_read_back_computes_the_same(tuned, tmp_path, dtype, tolerance):
    out = tmp_path / "out"
    main([str(tuned["plain"]), str(out), "to=gguf", f"dtype={dtype}"])
    model = AutoModelForCausalLM.from_pretrained(out, gguf_file="out.gguf", dtype=torch.float32)
    found = logits(model, AutoTokenizer.from_pretrained(tuned["plain"] / "model"))
    torch.testing.assert_close(found, opened(tuned["plain"]), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", ["plain", "coupled"])
def test_adapters_alone_open_by_the_name_of_their_base_model(tuned, toy_model, tmp_path, name):
    out = tmp_path / "out"
    main([str(tuned[name]), str(out), "to=adapter", "dtype=float32"])
    torch.testing.assert_close(opened(out), opened(tuned[name]))
    assert str(toy_model) in (out / "adapter_config.json").read_text()
    assert lab.load(str(out)).ask("12 + 34") == lab.load(str(tuned[name])).ask("12 + 34")


def test_the_command_ask_says_when_a_model_writes_ones_digit_first(tuned, capsys):
    ask([str(tuned["coupled"]), "Two and two are", "device=cpu"])
    assert "ones digit first: 579 is 975" in capsys.readouterr().out
    ask([str(tuned["plain"]), "Two and two are", "device=cpu"])
    assert "ones digit first" not in capsys.readouterr().out


def test_the_card_says_how_to_open_and_to_ask_the_model(tuned, tmp_path):
    main([str(tuned["coupled"]), str(tmp_path / "out"), "to=adapter"])
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("# ")
    assert "answers come ones digit first: 579 is 975" in card
    assert 'lab.load("out")' in card
    assert "| add | integer |" in card
    assert "kind: coupled" in card
    assert str(tmp_path) not in card
    assert str(tuned["coupled"].parent) not in card


def test_what_is_exported_into_a_zoo_is_opened_by_its_name_there(tuned, tmp_path):
    main([str(tuned["plain"]), str(tmp_path / "zoo" / "small"), "to=adapter"])
    assert 'lab.load("zoo/small")' in (tmp_path / "zoo" / "small" / "README.md").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{coupled}", "out", "to=merged"], "to=adapter is what it can be"),
        (["{coupled}", "out", "to=gguf"], "to=adapter is what it can be"),
        (["{plain}"], "give a run and a new folder"),
        (["{plain}", "."], "is there already"),
        (["nowhere", "out"], "nowhere: not a run of lab finetune or lab pretrain"),
        (["{plain}", "out", "to=onnx"], "to"),
        (["{plain}", "out", "to=scratch"], "a model tuned is exported with to=merged, gguf or adapter"),
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


def test_the_card_of_a_model_from_scratch_says_what_it_is(tmp_path):
    path = pretrained(tmp_path)
    main([str(path), str(tmp_path / "out")])
    model = loading.load_scratch(path).model
    first, _, what = (tmp_path / "out" / "README.md").read_text().splitlines()[:3]
    assert first == "# 1 layer trained from scratch on add_integer, 1-4 digits"
    assert f"{sum(weights.numel() for weights in model.parameters()):,} parameters" in what
