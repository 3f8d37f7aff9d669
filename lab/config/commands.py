"""Which command a config belongs to.

Runs record their command. Config files do not, nor do runs of earlier versions. For those, the command follows from a
top-level key that only the configs of that command have.
"""

from collections.abc import Collection

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
    """The command whose configs have these top-level keys; None if it cannot be told."""
    return next((command for key, command in _OWN_KEYS.items() if key in keys), None)
