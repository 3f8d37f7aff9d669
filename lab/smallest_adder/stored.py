"""Verdicts on disk: <name>.verdict.json beside a submission, good as long as neither it nor the verifier changes.

A stored verdict is believed as it stands, like any result on disk; remove it to have the submission tried again.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab.errors import TaskError
from lab.smallest_adder.contract import category, read_submission
from lab.smallest_adder.sandbox import Limits
from lab.smallest_adder.verify import VERSION, Verification, verify


def submissions(folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """(name, file) of every Python file below the folders that has the five exports; other files are passed over.

    A run's submission.py goes by the name of its folder. Raises TaskError where there is no such folder.
    """
    for folder in folders:
        if not folder.is_dir():
            raise TaskError(f"{folder}: there is no such folder")
        for path in sorted(folder.rglob("*.py")):
            try:
                read_submission(path)
            except TaskError:
                continue
            named = path.relative_to(folder).with_suffix("")
            yield str(named.parent if named.name == "submission" and named.parent.name else named), path


def verdict_of(path: Path, limits: Limits) -> dict[str, Any]:
    """The stored verdict of a submission, or a new one, which is stored."""
    source = read_submission(path)
    digest = hashlib.sha256(source.encode()).hexdigest()
    kept = path.with_suffix(".verdict.json")
    stored = _read(kept)
    if stored.get("sha256") == digest and stored.get("version") == VERSION:
        return stored
    verdict = {"version": VERSION, "sha256": digest, "category": category(source)} | _plainly(
        verify(source, limits=limits)
    )
    with suppress(OSError):  # a folder that cannot be written to: tried again the next time
        fresh = kept.with_name(f".{kept.name}.new")
        fresh.write_text(json.dumps(verdict, indent=2) + "\n", encoding="utf-8")
        fresh.replace(kept)
    return verdict


def _plainly(verification: Verification) -> dict[str, Any]:
    counts = verification.counts
    return {
        "verified": datetime.now(UTC).date().isoformat(),
        "qualified": verification.qualified,
        "right": verification.right,
        "problems": verification.problems,
        "seed": verification.seed,
        "counts": counts and counts._asdict(),
        "additions_per_second": round(verification.additions_per_second, 1),
        "confinement": verification.confinement,
        "verdicts": [verdict._asdict() for verdict in verification.verdicts],
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}
