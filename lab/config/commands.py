"""Tells which command a config belongs to, and which model it names. The config need not be validated.

Runs record their command. Config files and runs of earlier versions do not; their command is recognized by a top-level
key that only its configs have.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

_OWN_KEYS = {
    "command": "sweep",
    "benchmark": "evaluate",
    "rule_following": "cost",
    "subject": "probe",
    "adders": "probe",
    "group": "adder",
    "adapter": "finetune",
    "format": "pretrain",
}


def command_of(keys: Collection[str]) -> str | None:
    """The command whose configs have these top-level keys; None if there is no such command."""
    return next((command for key, command in _OWN_KEYS.items() if key in keys), None)


def foreign_command(keys: Collection[str], own: Collection[str]) -> str | None:
    """The command whose configs alone have one of these top-level keys, unless `own`, the keys of a command's configs,
    include it; None if there is no such command."""
    return next((command for key, command in _OWN_KEYS.items() if key in keys and key not in own), None)


def model_of(config: Mapping[str, Any]) -> str:
    """The name of a config's model. For a model from scratch, its size and encoding; for a sweep, its command and the
    name of its config."""
    if "command" in config:
        return f"{config['command']} {Path(str(config.get('config'))).stem}"
    engine = config.get("engine") or {}
    model = config.get("subject") or engine.get("model") or config.get("model") or config.get("rule_following") or ""
    if isinstance(model, dict):
        model = " ".join(str(model[key]) for key in ("name", "size", "encoding", "kind") if model.get(key))
    return str(model)
