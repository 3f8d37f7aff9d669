import sys
from importlib.machinery import ModuleSpec

import pytest

from lab.errors import ConfigError
from lab.runs import Run
from lab.tune import loggers
from lab.tune.loggers import check_loggers, logger_callbacks


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


def test_event_files_of_tensorboard_outlive_the_training(tmp_path):
    pytest.importorskip("tensorboard")
    run = Run.open(tmp_path / "run", "name: run\n")
    [callback] = logger_callbacks(["tensorboard"], run)
    assert callback.logging_dir == str(run.path / "tensorboard")
