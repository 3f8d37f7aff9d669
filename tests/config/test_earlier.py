"""Configs that earlier versions saved are read as what they meant."""

import pytest
import yaml

from lab.config.earlier import current
from lab.config.evaluation import EvaluateConfig
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import dump, load, renewed, saved
from lab.config.pretraining import PretrainConfig
from lab.errors import ConfigError
from lab.shipped import shipped_configs

LOCAL = "engine={kind: local, model: {name: smollm2-135m-instruct}}"
EVALUATED = load(EvaluateConfig, shipped_configs()["nupa_smollm2"], [LOCAL])
SCRATCH = load(PretrainConfig, shipped_configs()["rules_scratch"])
TUNED = load(FinetuneConfig, shipped_configs()["smollm2_lora"])


@pytest.mark.parametrize(("config", "section"), [(EVALUATED, "engine"), (TUNED, "evaluation")])
@pytest.mark.parametrize("drafts", [0, 16])
def test_a_saved_config_is_read_without_keys_that_are_gone(tmp_path, config, section, drafts):
    settings = config.model_dump(mode="json")
    settings[section]["speculation"] = drafts
    path = tmp_path / "config.yaml"
    path.write_text(yaml.dump(settings))
    assert saved(type(config), path) == config
    assert renewed(type(config), path.read_text()) == dump(config)  # so the run can be resumed


def test_a_key_that_is_gone_and_changed_a_model_is_refused_in_one_line(tmp_path):
    settings, path = SCRATCH.model_dump(mode="json"), tmp_path / "config.yaml"
    settings["data"]["rule_shown"] = False
    path.write_text(yaml.dump(settings))
    assert saved(PretrainConfig, path) == SCRATCH
    settings["data"]["rule_shown"] = True
    path.write_text(yaml.dump(settings))
    with pytest.raises(ConfigError, match=r"^.*config\.yaml: data\.rule_shown.*$"):
        saved(PretrainConfig, path)


def test_a_key_that_is_gone_is_refused_where_it_would_be_set_anew():
    with pytest.raises(ConfigError, match=r"evaluation\.speculation"):
        load(FinetuneConfig, shipped_configs()["smollm2_lora"], ["evaluation.speculation=8"])


@pytest.mark.parametrize("odd", [None, "text", [1], {"engine": None}, {"engine": 5}, {"engine": [1]}])
def test_what_is_no_config_stays_as_it_is(odd):
    assert current(odd) == odd
