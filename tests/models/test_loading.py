import shutil
import warnings
from unittest.mock import Mock

import httpx2
import pytest
import torch
import yaml
from huggingface_hub.errors import GatedRepoError
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from lab.ask import main as ask
from lab.config.finetuning import LoraConfig
from lab.config.schema import ModelConfig
from lab.errors import LabWarning, ModelError
from lab.export import main as export
from lab.models import adapters, loading, pretrained, sources


@pytest.fixture
def run(toy_model, tmp_path):
    """A run directory of fine-tuning: its config, and adapters that change something."""
    config = ModelConfig(name=str(toy_model), device="cpu", dtype="float32")
    model, _ = pretrained.load(config)
    tuned = adapters.attach(model, LoraConfig(rank=2), seed=0)
    for name, parameter in tuned.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    tuned.save_pretrained(tmp_path / "run" / "model")
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump({"model": config.model_dump(mode="json")}))
    return tmp_path / "run", tuned


def logits(model):
    with torch.inference_mode():
        return model(input_ids=torch.arange(1, 9)[None]).logits


def test_a_run_directory_is_its_base_model_with_its_adapters(run, toy_model):
    folder, tuned = run
    loaded, _ = loading.load(ModelConfig(name=str(folder), device="cpu"))
    plain, _ = loading.load(ModelConfig(name=str(toy_model), device="cpu", dtype="float32"))
    assert torch.allclose(logits(loaded), logits(tuned.eval()), atol=1e-4)
    assert not torch.allclose(logits(loaded), logits(plain), atol=1e-2)


def test_a_folder_of_adapters_names_its_own_base(run):
    folder, tuned = run
    loaded, _ = loading.load(ModelConfig(name=str(folder / "model"), device="cpu", dtype="float32"))
    assert torch.allclose(logits(loaded), logits(tuned.eval()), atol=1e-4)


def test_what_is_said_of_the_model_counts_before_what_its_run_said(run):
    folder, _ = run
    loaded, _ = loading.load(ModelConfig(name=str(folder), device="cpu", dtype="bfloat16"))
    assert loaded.dtype == torch.bfloat16


def test_a_run_with_a_whole_model_is_that_model(run, toy_model, tmp_path):
    whole = tmp_path / "scratch"
    whole.mkdir()
    (whole / "config.yaml").write_text("name: scratch\n")
    (whole / "model").symlink_to(toy_model)
    loaded, _ = loading.load(ModelConfig(name=str(whole), device="cpu", dtype="float32"))
    plain, _ = pretrained.load(ModelConfig(name=str(toy_model), device="cpu", dtype="float32"))
    assert torch.equal(logits(loaded), logits(plain))


def test_adapters_without_some_of_their_weights_are_refused(run):
    folder, _ = run
    weights = load_file(file := folder / "model" / "adapter_model.safetensors")
    save_file({name: weight for name, weight in weights.items() if "layers.0." not in name}, file)
    with pytest.raises(ModelError, match=r"not a loadable adapter: Found missing adapter keys"):
        loading.load(ModelConfig(name=str(folder), device="cpu"))


def test_a_head_that_shares_its_weights_with_the_embeddings_gets_no_adapter(toy_model):
    model, _ = pretrained.load(ModelConfig(name=str(toy_model), device="cpu", dtype="float32"))
    adapters.check_targets(model, LoraConfig(rank=2, targets=["lm_head"]))
    model.config.tie_word_embeddings = True
    with pytest.raises(ModelError, match=r"^adapter\.targets: lm_head shares its weights"):
        adapters.check_targets(model, LoraConfig(rank=2, targets=["lm_head"]))


def test_a_run_without_a_model_and_adapters_without_a_base_are_one_line(tmp_path):
    (tmp_path / "config.yaml").write_text("name: x\n")
    with pytest.raises(ModelError, match="this run has no model"):
        loading.load(ModelConfig(name=str(tmp_path)))
    (tmp_path / "config.yaml").unlink()
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match="names no base model"):
        loading.load(ModelConfig(name=str(tmp_path)))


def test_a_model_from_scratch_is_not_asked_in_words(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "number_llama"}')
    with pytest.raises(ModelError, match="reads its own notation, not text"):
        loading.load(ModelConfig(name=str(tmp_path)))


def test_what_is_no_run_of_pretrain_is_one_line(tmp_path):
    with pytest.raises(ModelError, match=r"not a run of lab\.pretrain with a model in it"):
        loading.load_scratch(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "config.yaml").write_text("name: x\nengine: {kind: local}\n")
    with pytest.raises(ModelError, match=r"config\.yaml: not a config of lab\.pretrain"):
        loading.load_scratch(tmp_path)


def cut_in_half(folder):
    """The weight file of a folder, cut in half."""
    [file] = folder.rglob("*.safetensors")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return file


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adds-4-digits", "adds-as-written", "adds-in-prose"])
def test_weights_that_were_cut_off_are_one_line_that_names_the_file_and_says_how_to_make_it_again(
    name, tmp_path, capsys
):
    folder = shutil.copytree(sources.zoo()[f"zoo/{name}"], tmp_path / "copied")
    file = cut_in_half(folder)
    for command, arguments in ((ask, [str(folder), "12 + 34"]), (export, [str(folder), str(tmp_path / "out")])):
        if command is export and name == "adds-in-prose":
            continue  # it is not a run
        with pytest.raises(SystemExit) as stopped:
            command(arguments)
        told = capsys.readouterr().err
        assert (stopped.value.code, told.strip().count("\n")) == (2, 0)
        assert str(file) in told
        assert "export or train the model again" in told
        assert "smollm2" not in told
    assert not (tmp_path / "out").exists()


def test_a_whole_model_that_was_cut_off_is_told_like_any_other_and_an_embedded_one_is_fetched_again(
    toy_model, tmp_path, monkeypatch
):
    folder = shutil.copytree(toy_model, tmp_path / "cache" / "toy")
    file = cut_in_half(folder)
    with pytest.raises(ModelError, match="export or train the model again") as caught:
        pretrained.load(ModelConfig(name=str(folder)))
    assert str(file) in str(caught.value)
    (folder / "tokenizer_config.json").touch()
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sources.EMBEDDED, "toy", sources.Embedded("toys==1", "", "Toy.gguf"))
    with pytest.raises(ModelError, match=rf"remove {folder} to fetch it again"):
        pretrained.load(ModelConfig(name="toy"))


@pytest.mark.parametrize("name", ["adds-1000", "adds-1000-rope", "adds-as-written"])
def test_a_model_from_scratch_of_an_earlier_version_is_saved_again_with_the_names_of_today(name, tmp_path):
    folder = sources.zoo()[f"zoo/{name}"] / "model"
    before = AutoModelForCausalLM.from_pretrained(folder)
    before.save_pretrained(tmp_path)
    saved = load_file(tmp_path / "model.safetensors")
    assert not {key.split(".")[0] for key in saved} - {"model", "lm_head", "parts"}
    assert {key.split(".")[0] for key in load_file(folder / "model.safetensors")} - {"model", "lm_head", "parts"}
    after = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert list(after.parts) == list(before.parts)
    assert torch.equal(logits(after), logits(before))


def test_weights_that_this_machine_cannot_hold_are_warned_of_before_they_are_fetched(monkeypatch):
    monkeypatch.setattr(pretrained, "free_memory", lambda device: 8e9)
    config = ModelConfig(name="meta-llama/Llama-3.1-8B", dtype="bfloat16", device="cpu")
    with pytest.warns(LabWarning, match=r"16.1 GB to download, 16.1 GB of memory, but only 8.0 GB are free"):
        pretrained.warn_of_size(config, 16.06e9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pretrained.warn_of_size(config.model_copy(update={"quantization": "nf4"}), 16.06e9)


def test_a_model_that_wants_a_login_says_how_to_log_in(monkeypatch):
    refused = GatedRepoError("401", response=httpx2.Response(401, request=httpx2.Request("GET", "https://hub")))
    monkeypatch.setattr(pretrained, "model_info", Mock(side_effect=refused))
    with pytest.raises(ModelError, match="hf auth login"):
        pretrained.load(ModelConfig(name="meta-llama/Llama-3.1-8B", dtype="float32", device="cpu"))
