import os
import sys
from importlib.machinery import ModuleSpec

import pytest

from lab.errors import ConfigError
from lab.pretrain import main as pretrain
from lab.runs import Run
from lab.shipped import shipped_configs
from lab.tune import loggers
from lab.tune.loggers import check_loggers, log_into


@pytest.fixture
def installed(monkeypatch):
    """Which loggers there are."""
    names: set[str] = set()
    monkeypatch.setattr(loggers, "find_spec", lambda name: ModuleSpec(name, None) if name in names else None)
    return names


def test_a_logger_that_is_not_installed_is_named_with_its_extra(installed):
    with pytest.raises(ConfigError, match=r'report_to: trackio is not installed; pip install -e "\.\[loggers\]"'):
        check_loggers(["trackio"])
    installed.add("trackio")
    check_loggers(["trackio"])
    check_loggers([])


class NoKey:
    class Error(Exception): ...

    @staticmethod
    def login(**settings):
        return False


def test_wandb_wants_a_key_unless_it_is_offline(installed, monkeypatch):
    installed.add("wandb")
    monkeypatch.setitem(sys.modules, "wandb", NoKey)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    with pytest.raises(ConfigError, match="WANDB_MODE=offline"):
        check_loggers(["wandb"])
    monkeypatch.setenv("WANDB_MODE", "offline")
    check_loggers(["wandb"])


def test_loggers_write_into_the_run_directory_of_the_latest_training(tmp_path, monkeypatch):
    for name in ("TENSORBOARD_LOGGING_DIR", "WANDB_DIR", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    for name in ("first", "second"):
        run = Run.open(tmp_path / name, f"name: {name}\n")
        log_into(run)
        assert os.environ["TENSORBOARD_LOGGING_DIR"] == str(run.path / "tensorboard")
    assert os.environ["WANDB_PROJECT"] == "mine"
    monkeypatch.delenv("WANDB_DIR")
    monkeypatch.delenv("TENSORBOARD_LOGGING_DIR")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_training_is_logged_beside_its_metrics(tmp_path, monkeypatch, name):
    pytest.importorskip(name)
    monkeypatch.setenv("WANDB_MODE", "offline")
    for variable in ("TENSORBOARD_LOGGING_DIR", "WANDB_DIR"):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)
    small = ["model.size=0.2M", "model.device=cpu", "training={max_steps: 2, warmup_steps: 1, log_every: 1}"]
    tested = ["training={evaluate_every: 1, valid_problems: 4}", "evaluation={lengths: [4], problems_per_length: 2}"]
    pretrain(
        [str(shipped_configs()["four_digits"]), *small, *tested, f"output={tmp_path}", f"training.report_to=[{name}]"]
    )
    assert any((tmp_path / "four_digits" / name).rglob("*.*"))
