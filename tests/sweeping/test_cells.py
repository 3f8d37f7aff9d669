import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.config.loading import dump, load
from lab.config.pretraining import PretrainConfig
from lab.errors import ConfigError
from lab.runs import Run
from lab.sweeping.cells import trials
from lab.sweeping.config import SweepConfig

ROOT = Path(__file__).parents[2]


def sweep(output: Path, **more) -> SweepConfig:
    config = {"name": "try", "command": "pretrain", "config": ROOT / "configs" / "scratch_add.yaml", "output": output}
    return SweepConfig.model_validate({**config, "results": {"kind": "length_curves"}, **more})


def names(config: SweepConfig) -> list[str]:
    return [trial.name for trial in trials(config)]


def test_every_combination_is_a_run_and_all_of_a_seed_come_before_the_next_seed(tmp_path):
    grid = {"data.tasks": [["add_integer"], ["max_integer"]], "training.learning_rate": [1e-3, 3e-5]}
    cells = {"3.2M as it was": {"model.size": "3.2M"}, "plain": {}}
    found = names(sweep(tmp_path, grid=grid, cells=cells, seeds=[0, 7]))
    assert found[:3] == [
        "try_add_integer_learning_rate-0.001_3.2M-as-it-was_0",
        "try_add_integer_learning_rate-0.001_plain_0",
        "try_add_integer_learning_rate-3e-05_3.2M-as-it-was_0",
    ]
    assert [name[-1] for name in found] == ["0"] * 8 + ["7"] * 8
    assert len(set(found)) == 16


@pytest.mark.parametrize(
    ("sweep_name", "overrides", "name"),
    [
        ("packing", ['only=["sixteen packed"]'], "packing_sixteen-packed_0"),
        ("packing_reach", ['only=["trained to 10"]'], "packing_reach_trained-to-10_0"),
        ("positions", ["grid={data.tasks: [[add_integer]]}"], "positions_add_integer_alibi-as-released_0"),
        ("formats_float", ["seeds=[0]"], "formats_float_add_float_integer-part-padded_0"),
        ("tokenizers", [], "tokenizers_add_integer_1-digit_0"),
    ],
)
def test_runs_have_the_names_that_the_log_of_experiments_cites(tmp_path, sweep_name, overrides, name):
    file = ROOT / "configs" / "sweeps" / f"{sweep_name}.yaml"
    config = load(SweepConfig, file, [*overrides, f"output={tmp_path}"])
    assert name in names(config.model_copy(update={"config": file.parent / config.config}))


def test_a_command_is_the_config_with_what_the_cell_changes_and_takes_up_what_is_there(tmp_path):
    config = sweep(tmp_path, changes={"training": {"max_steps": 5}}, grid={"model.size": ["0.4M"]}, seeds=[3])
    [trial] = trials(config)
    assert trial.command[1:3] == ("-m", "lab.pretrain")
    assert trial.command[4:] == (
        'training={"max_steps": 5}',
        'model.size="0.4M"',
        "name=try_0.4M_3",
        "seed=3",
        f"output={tmp_path}",
        "resume=true",
    )
    assert (trial.config.seed, trial.config.resume, trial.config.path) == (3, True, tmp_path / "try_0.4M_3")


def test_everything_wrong_with_any_cell_is_said_at_once_with_its_name_and_nothing_is_written(tmp_path):
    cells = {"big": {"model.size": "70B"}, "odd": {"data.pack": 3}, "fine": {}, "clash": {"data.packing": 3}}
    with pytest.raises(ConfigError) as raised:
        trials(sweep(tmp_path / "out", cells=cells, seeds=[0, 1]))
    lines = str(raised.value).splitlines()
    assert len(lines) == 3
    assert re.match('cell big: argument .*model.size = "70B": should be one of 0.2M', lines[0])
    assert re.match("cell odd: .*data.pack = 3: no such key, did you mean packing", lines[1])
    assert lines[2].startswith("cell clash: ")
    assert lines[2].endswith("data.packing=3 should divide training.micro_batch_size=32, which counts problems")
    assert not (tmp_path / "out").exists()


def test_what_is_wrong_with_every_cell_is_said_once(tmp_path):
    with pytest.raises(ConfigError) as raised:
        trials(sweep(tmp_path, changes={"model.sise": 1}, cells={"a": {}, "b": {}}))
    assert str(raised.value).startswith("every cell: argument 'model.sise=1': model.sise = 1: no such key")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("cells", [{"a b": {}, "a, b": {"data.packing": 2}}])
def test_cells_whose_runs_would_have_one_name_are_refused(tmp_path, cells):
    with pytest.raises(ConfigError, match="cell a-b: two cells have this name: cell a b and cell a, b"):
        trials(sweep(tmp_path, cells=cells))
    with pytest.raises(ConfigError, match="cell packing-2: two cells have this name"):
        trials(sweep(tmp_path, grid={"data.packing": [2, 2]}))


def test_a_run_of_another_config_is_told_before_anything_starts(tmp_path):
    config = sweep(tmp_path, grid={"model.size": ["0.2M", "0.4M"]})
    first, second = trials(config)
    with first.config.open_run():
        pass
    assert [trial.finished for trial in trials(config)] == [True, False]
    other = second.config.model_copy(update={"seed": 9})
    Run.open(other.path, dump(other))
    with pytest.raises(
        ConfigError, match=r"cell 0.4M: .*try_0\.4M_0: cannot resume with another config: seed was 9, is 0"
    ):
        trials(config)
    (tmp_path / "try_0.2M_0" / "status").unlink()
    with pytest.raises(ConfigError, match=r"cell 0.2M: .*is not a run directory"):
        trials(config)


VALUES = st.one_of(st.integers(1, 64), st.sampled_from(["aligned", "left"]), st.floats(1e-5, 1))


KEYS = st.sampled_from(["training.max_steps", "training.weight_decay", "tokenizer.kind"])


@settings(max_examples=8)
@given(st.dictionaries(KEYS, st.lists(VALUES, min_size=1, max_size=2), max_size=2))
def test_names_are_unique_and_of_folders_or_the_sweep_is_refused(tmp_path_factory, grid):
    output = tmp_path_factory.getbasetemp() / "nothing"
    try:
        found = trials(sweep(output, grid=grid, cells={"plain": {}}))
    except ConfigError:
        return
    assert len({trial.name for trial in found}) == len(found)
    assert all(re.fullmatch(r"[\w.+-]+", trial.name) for trial in found)
    for trial in found:
        path, *arguments = trial.command[3:]
        assert load(PretrainConfig, Path(path), arguments) == trial.config
