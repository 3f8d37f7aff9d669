"""Verdicts on disk. Does not import torch, because leaderboards and reports only read them.

They are in the lab's cache, because a file beside a submission came with it and could be forged. A verdict is stored
under the text of the submission and the verifier's version, and holds as long as neither changes.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.errors import TaskError
from lab.models.sources import cache_folder
from lab.smallest_adder.contract import category, read_submission, seeds

if TYPE_CHECKING:
    from lab.smallest_adder.trace.child import Limits

VERSION = 11
"""Increased when the verifier could judge a submission differently than before."""


def submissions(folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """(name, file) of every Python file below the folders that has the five exports; other files are skipped.

    A run's submission.py goes by the name of its folder. Raises TaskError if there is no such folder.
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


def verdict_of(path: Path, limits: "Limits") -> dict[str, Any]:
    """The stored verdict of a submission, or a new one, which is stored."""
    if (stored := known(path)) is not None:
        return stored
    from lab.smallest_adder.verify import verify  # imports torch, which reading verdicts does not need

    source = read_submission(path)
    verdict = {"category": category(source), "seeds": seeds(source)} | verify(source, limits=limits).plainly()
    kept = _place(path)
    with suppress(OSError):  # if the cache cannot be written, the next call tries the submission again
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(".new")
        fresh.write_text(json.dumps(verdict, indent=2) + "\n", encoding="utf-8")
        fresh.replace(kept)
    return verdict


def known(path: Path) -> dict[str, Any] | None:
    """The stored verdict of a submission, if there is one."""
    try:
        stored = json.loads(_place(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return stored if isinstance(stored, dict) and "verdicts" in stored else None


def _place(path: Path) -> Path:
    digest = hashlib.sha256(f"{VERSION}\n".encode() + path.read_bytes()).hexdigest()
    return cache_folder() / "verdicts" / f"{digest}.json"
