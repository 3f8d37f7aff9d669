import pytest

from lab.config.loading import dump, load
from lab.errors import ConfigError
from lab.sweeping.config import SlurmLauncherConfig, SweepConfig

SWEEP = """
name: try
command: pretrain
config: base.yaml
grid: {model.size: [0.2M, 0.4M]}
results: {kind: length_curves}
launcher: {kind: local}
"""


def sweep(tmp_path, *overrides: str, text: str = SWEEP) -> SweepConfig:
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    return load(SweepConfig, path, overrides)


def test_the_same_file_runs_here_or_on_slurm(tmp_path):
    assert sweep(tmp_path).launcher.kind == "local"
    slurm = sweep(tmp_path, "launcher={kind: slurm, partition: gpu, gpus: 2, minutes: 90}").launcher
    assert isinstance(slurm, SlurmLauncherConfig)
    assert (slurm.partition, slurm.gpus, slurm.minutes) == ("gpu", 2, 90)


def test_a_sweep_survives_its_own_dump(tmp_path):
    config = sweep(tmp_path, "seeds=[3, 1]", "cells={a b: {data.packing: 2, training.betas: [0.9, 1e-3]}, plain: {}}")
    assert sweep(tmp_path, text=dump(config)) == config


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["command=train"], "'finetune', 'pretrain', 'evaluate', 'cost', 'probe' or 'adder'"),
        (["grid={model.size: []}"], "grid.model.size = []: List should have at least 1 item"),
        (["launcher.kind=cloud"], "launcher.kind = \"cloud\": should be 'local', 'slurm'"),
        (["launcher.partition=gpu"], "no such key"),
        (["launcher.jobs=0"], "greater than or equal to 1"),
        (["launcher={kind: local, jobs: 3, gpus: [0, 1]}"], "gpus should name a different device for each of jobs=3"),
        (["seeds=[]"], "seeds = []"),
        (["seeds=[1, 1]"], "should be different numbers, each at least 0"),
        (["seeds=[-1]"], "should be different numbers, each at least 0"),
        (["cells={one: {name: x}}"], "a cell cannot set name"),
        (["changes.seed=4"], "a cell cannot set seed"),
        (["cells={one: {model.size: 3.2M}}"], "model.size is set by both grid and cells"),
        (["only=[odd]"], "only: odd is not one of cells: there are none"),
        (["results={kind: values}"], "shares or means should name at least one path"),
        (["results={kind: values, shares: {a: b}, means: {a: c}}"], "a is a name in both shares and means"),
        (["command=adder"], "results.kind=length_curves needs command=pretrain"),
        (["name=a/b"], "should be the name of a folder"),
    ],
)
def test_what_is_wrong_with_a_sweep_is_one_line(tmp_path, overrides, message):
    with pytest.raises(ConfigError) as raised:
        sweep(tmp_path, *overrides)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_sweep_without_anything_to_try_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="grid or cells should name something to try"):
        sweep(tmp_path, text=SWEEP.replace("grid: {model.size: [0.2M, 0.4M]}", "grid: {}"))


def test_two_cells_of_one_name_are_refused_with_their_lines(tmp_path):
    with pytest.raises(ConfigError, match=r"sweep\.yaml:10: key 'a' was already given at .*sweep\.yaml:9"):
        sweep(tmp_path, text=f"{SWEEP}cells:\n  a: {{}}\n  a: {{}}\n")
