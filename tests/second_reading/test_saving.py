import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

from lab.config.evaluation import LocalEngineConfig
from lab.config.schema import ModelConfig
from lab.engines.engine import Request, Sampling
from lab.errors import ConfigError, ModelError
from lab.models import loading
from lab.second_reading import engine, saving
from lab.second_reading.adapted import SecondReading, grid
from lab.second_reading.reader import Reader
from tests.second_reading.conftest import Characters

CONFIG = saving.Config(
    base="tiny", rank=4, walkers=2, walking=(14, 17), reader_width=16, reader_depth=1, threshold=0.5, likely=0.0
)


@pytest.fixture
def folder(tmp_path: Path, second: SecondReading, finds: Callable[[str, str], Reader]) -> Path:
    saving.save(tmp_path / "saved", CONFIG, second, [finds("sum", "plus")])
    return tmp_path / "saved"


@pytest.fixture
def without_hub(monkeypatch: pytest.MonkeyPatch, llama: LlamaForCausalLM) -> None:
    monkeypatch.setattr(saving.pretrained, "load", lambda config: (llama, Characters()))


def local(folder: Path, **keys: object) -> LocalEngineConfig:
    return LocalEngineConfig.model_validate({"model": {"name": str(folder)}, **keys})


@pytest.mark.usefixtures("without_hub")
def test_a_saved_model_computes_as_before_but_for_the_rounding_of_its_weights(
    folder: Path, second: SecondReading
) -> None:
    told = grid([("add", 358, 47)])
    found = saving.load(folder).second(told).logits_NPV
    torch.testing.assert_close(found, second(told).logits_NPV, atol=0.3, rtol=0.1)


@pytest.mark.usefixtures("without_hub")
def test_the_engine_continues_a_text_with_the_computed_number_and_counts_its_tokens(folder: Path) -> None:
    opened = engine.opened(local(folder))
    assert opened is not None
    text = "12 and 30 make "
    [found] = opened[0].generate([Request(text, 12)])
    alone = opened[0].readings.continued(Characters().encode(text), 12, opened[0].ends)
    assert found[0].text == Characters().decode(alone.tokens)
    assert alone.computed
    assert (found[0].completion_tokens, found[0].finish_reason) == (12, "length")


@pytest.mark.usefixtures("without_hub")
def test_the_engine_stops_once_the_text_decides_the_answer(folder: Path) -> None:
    opened = engine.opened(local(folder))
    assert opened is not None
    [found] = opened[0].generate([Request("12 and 30 make ", 12, decided=lambda text: len(text) >= 2)])
    assert found[0].finish_reason == "decided"
    assert 2 <= found[0].completion_tokens < 12


@pytest.mark.usefixtures("without_hub")
def test_a_temperature_is_refused(folder: Path) -> None:
    opened = engine.opened(local(folder))
    assert opened is not None
    with pytest.raises(ConfigError, match="most likely tokens"):
        next(iter(opened[0].generate([Request("1 + 2 = ", 4)], Sampling(temperature=1.0))))


def test_other_folders_are_left_to_other_engines(tmp_path: Path) -> None:
    assert engine.opened(local(tmp_path)) is None


def test_commands_that_train_or_probe_refuse_such_a_folder(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"^\S+: only lab ask, lab\.load, lab evaluate and lab export open"):
        loading.load(ModelConfig(name=str(folder)))


def test_a_setting_of_other_models_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"^parts\.clipped_distances does not go with a model of two readings"):
        engine.opened(local(folder, parts={"clipped_distances": {"at": 5}}))


@pytest.mark.usefixtures("without_hub")
@pytest.mark.parametrize("file", [saving.ADAPTERS, saving.READERS])
@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_missing_or_damaged_weights_are_named_in_one_line(
    folder: Path, file: str, damage: str, second: SecondReading
) -> None:
    path = folder / file
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:100])
    else:
        saving.save_file({"0.x": torch.zeros(1)}, path)
    with pytest.raises(ModelError) as error:
        saving.load(folder)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("change", [{"rank": "many"}, {"raank": 4}])
def test_a_bad_config_is_named_with_its_key(folder: Path, change: dict[str, object]) -> None:
    facts = json.loads((folder / saving.CONFIG).read_text())
    (folder / saving.CONFIG).write_text(json.dumps({**facts, **change}))
    with pytest.raises(ModelError, match=f"{saving.CONFIG}: {next(iter(change))}"):
        saving.load(folder)
