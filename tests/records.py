"""Reads what a run has written."""

import json
from pathlib import Path


def records(path: Path) -> list[dict]:
    """The lines of a .jsonl file."""
    return [json.loads(line) for line in path.open()]
