"""The words of the prompts (`wordings.yaml`), by split."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("wordings.yaml")


@cache
def wordings(split: str) -> dict[str, Any]:
    """The words of "training" or "validation"."""
    return _all()[split]


@cache
def _all() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))
