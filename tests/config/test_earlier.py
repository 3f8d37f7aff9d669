"""Configs that earlier versions saved are read as what they meant."""

import pytest
import yaml

from lab.config.earlier import current, scratch_parts
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


def test_a_saved_model_from_scratch_is_read_as_the_parts_that_it_was_made_of(tmp_path):
    settings, path = SCRATCH.model_dump(mode="json"), tmp_path / "config.yaml"
    del settings["uses"], settings["parts"]
    settings["model"] |= {"encoding": "relative", "locality": 0.0, "window": 1, "far_copies": 1.0, "far_at_most": 0}
    settings["model"] |= {"clip_distance": 0, "rope_factor": 1.0, "stick_breaking": 2, "downward": 0}
    positions = {"kind": "coupled", "largest": 2048, "segments": True, "through_point": False}
    settings["model"]["positions"] = positions
    path.write_text(yaml.dump(settings))
    assert saved(PretrainConfig, path) == SCRATCH
    assert renewed(PretrainConfig, path.read_text()) == dump(SCRATCH)


@pytest.mark.parametrize(
    ("keys", "parts"),
    [
        ({"encoding": "rope"}, {}),
        ({"encoding": "alibi_released"}, {"alibi": {"as_released": True}}),
        (
            {"encoding": "learned", "position_kind": "abacus", "largest": 64},
            {"abacus_ids": {"largest": 64}, "learned_ids": {}},
        ),
        ({"encoding": "learned", "largest": 64}, {"learned_ids": {"largest": 64}}),
        (
            {"encoding": "rope", "locality": "learned", "clip_distance": 9},
            {"locality": {"slope": "learned"}, "clipped_distances": {"at": 9}},
        ),
        ({"encoding": "fire", "segments": True}, {"fire": {}, "segments": {}}),
    ],
)
def test_each_key_of_a_model_from_scratch_became_a_part(keys, parts):
    assert scratch_parts(keys) == {"uses": [], "parts": parts}


def test_what_one_experiment_alone_uses_is_imported_from_there():
    found = scratch_parts({"encoding": "relative", "positions": {"kind": "counted", "segments": True}, "locality": 4})
    assert found["uses"] == ["experiments.parts.counted_ids"]
    assert found["parts"] == {"counted_ids": {}, "locality": {"slope": 4}, "relative_keys": {}, "segments": {}}


def test_an_evaluation_with_a_bound_on_far_digits_is_read_as_one_with_the_part(tmp_path):
    settings, path = EVALUATED.model_dump(mode="json"), tmp_path / "config.yaml"
    settings["engine"] |= {"far_at_most": 5, "clip_distance": 0, "spacing": 0}
    del settings["engine"]["parts"]
    path.write_text(yaml.dump(settings))
    assert saved(EvaluateConfig, path).engine.parts == {"far_digits": {"at_most": 5}}
