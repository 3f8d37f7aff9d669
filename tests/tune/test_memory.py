"""A training that needs more memory than there is is refused before it starts, whichever command trains."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lab.adder import main as adder
from lab.finetune import main as finetune
from lab.models import free_memory
from lab.models.free_memory import check_free, kept_by
from lab.pretrain import main as pretrain
from lab.tune.memory import Need

ROOT = Path(__file__).parents[2]


def test_what_a_forward_pass_keeps_is_counted_without_its_weights():
    weight_EE = torch.ones(8, 8, requires_grad=True)
    x_RE = torch.ones(5, 8)
    # x is kept for the gradient of the weight, and the result of exp for its own: 2 x 5 x 8 numbers of four bytes
    assert kept_by(lambda: (x_RE @ weight_EE).exp().sum(), [weight_EE]) == 2 * 5 * 8 * 4


@pytest.mark.parametrize(
    ("needed", "told"), [(1e8, ""), (3e8, "a step needs about 300 MB to 600 MB of memory; 1.0 GB are free\n")]
)
def test_only_what_needs_much_of_the_free_memory_is_announced(needed, told, capsys):
    check_free(needed, 1e9, "a step", lambda: "")
    assert capsys.readouterr().out == told


def test_the_need_grows_with_the_rows():
    need = Need(rows=64, tokens=605, a_row=1.5e8, fixed=4e8)
    assert need.bytes == 10e9
    assert str(need) == "a training step (64 rows of up to 605 tokens at a time)"


def _pretrain(folder: Path, toy: Path) -> None:
    pretrain(["rules_scratch", "name=big", f"output={folder}", "training.batch_size=4096"])


def _finetune(folder: Path, toy: Path) -> None:
    finetune(["smollm2_lora", "name=big", f"output={folder}", f"model.name={toy}", "data.tasks=[add_integer]"])


def _adder(folder: Path, toy: Path) -> None:
    adder(["train", "adder_tiny", "name=big", f"output={folder}"])


@pytest.mark.parametrize("train", [_pretrain, _finetune, _adder])
def test_every_command_that_trains_refuses_what_does_not_fit_and_writes_nothing(
    train, tmp_path, toy_model, monkeypatch, capsys
):
    monkeypatch.setattr(free_memory, "free_memory", lambda device: 1e5)
    for module in ("lab.tune.memory", "lab.adders.groups"):
        __import__(module)
        monkeypatch.setattr(sys.modules[module], "free_memory", lambda device: 1e5)
    with pytest.raises(SystemExit) as ended:
        train(tmp_path / "runs", toy_model)
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert "error: a training step (" in line
    assert "but only 0 MB are free: " in line
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_rule_whose_traces_are_long_is_refused_and_does_not_fill_the_memory(tmp_path):
    """The traces of mod are hundreds of words long, and each pair of words has a score."""
    job = [sys.executable, "-m", "lab.pretrain", "rules_scratch", f"output={tmp_path / 'runs'}"]
    job.append("data={tasks: [mod_integer], factor_digits: 3}")
    done = subprocess.run(
        ["bash", "-c", 'ulimit -v 6000000; "$@"', "bash", *job], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    [line] = done.stderr.strip().splitlines()
    assert "rows of up to" in line
    assert "use training.micro_batch_size=" in line
    assert not (tmp_path / "runs").exists()
