"""Evalchemy's rows of NUPA, one JSON object per line: which texts of a published file it asks, and in which order.

NUPA    at most 100 texts of each stratum, drawn by Python's `random` from a fixed seed: 238,926 in all.
NUPA5K  5,000 texts, the panel. They are chosen in rounds over the strata; in each round, each stratum gives the text
        with its next smallest digest. Evalchemy has a list of them, the manifest, whose digest is known (PANEL_SHA256).

The -Loose tasks have the same rows; they read answers differently (lab/benchmarks/nupa/verdicts.py).
"""

import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NotRequired

from lab.benchmarks.nupa.layouts.strata import Facts, Texts, digest, facts
from lab.errors import TaskError
from lab.user_files import parse_json, read_text

EACH, SEED = 100, 20_222_943
"""How many texts of a stratum NUPA asks, and the seed that they are drawn from."""
PANEL = 5_000
PANEL_SHA256 = "27f122972d76dc2a1170a3d105a9856b55beedabe037f697c1a1aa2baeb67036"
"""The digest of the manifest of NUPA5K, from the dataset at its pinned revision."""


class Identity(NamedTuple):
    """A text of the panel."""

    task: str
    digits: int
    sha256: str


class Row(Facts):
    id: str
    source_sha256: NotRequired[str]
    """Only in NUPA5K."""


def sampled(texts: Texts, each: int = EACH) -> Iterator[Row]:
    """The rows of NUPA.

    Args:
        texts: a published file. The order of its strata decides which texts are drawn.
        each: the largest number of texts from one stratum.
    """
    draw = random.Random(SEED)
    for task, groups in texts.items():
        for digits, group in groups.items():
            chosen = draw.sample(group, min(each, len(group)))
            for place, text in enumerate(chosen):
                yield {"id": f"test:{task}:{int(digits)}:{place:06d}", **facts(task, int(digits), groups, text)}


def panel(texts: Texts, size: int = PANEL) -> list[Identity]:
    """The texts of NUPA5K, in its order. Raises TaskError if the file has fewer distinct texts."""
    left: dict[tuple[str, int], Iterator[str]] = {}
    for task, groups in texts.items():
        for digits, group in groups.items():
            left[task, int(digits)] = iter(sorted(set(map(digest, group))))
    chosen: list[Identity] = []
    while left:
        for stratum in sorted(left):
            sha256 = next(left[stratum], None)
            if sha256 is None:
                del left[stratum]
            else:
                chosen.append(Identity(*stratum, sha256))
            if len(chosen) == size:
                return chosen
    raise TaskError(f"a panel of {size:,} texts needs as many distinct ones; the file has {len(chosen):,}")


def manifest(chosen: Sequence[Identity]) -> bytes:
    """The list of a panel's texts, as in evalchemy's file."""
    lines = [{"digit": digits, "sha256": sha256, "task_name": task} for task, digits, sha256 in chosen]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()


def is_published(chosen: Sequence[Identity]) -> bool:
    """Whether a panel is NUPA5K's own, by the digest of its list."""
    return hashlib.sha256(manifest(chosen)).hexdigest() == PANEL_SHA256


def panel_rows(texts: Texts, chosen: Sequence[Identity]) -> list[Row]:
    """The rows of a panel, in its order."""
    by_digest = {
        Identity(task, int(digits), digest(text)): text
        for task, groups in texts.items()
        for digits, group in groups.items()
        for text in group
    }
    return [
        {
            "id": f"test:{one.task}:{one.digits}:{one.sha256}",
            **facts(one.task, one.digits, texts[one.task], by_digest[one]),
            "source_sha256": one.sha256,
        }
        for one in chosen
    ]


def write(rows: Iterable[Row], path: Path) -> int:
    """Writes rows as evalchemy does, and returns how many."""
    lines = [json.dumps(row, sort_keys=True) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8", newline="\n")
    return len(lines)


def read(path: Path) -> list[Row]:
    """The rows of a file. Raises TaskError, naming the line, if one is not a row."""
    rows = []
    for number, line in enumerate(read_text(path, TaskError).split("\n"), start=1):
        if line.strip():
            row = parse_json(line, f"{path}:{number}", TaskError)
            if wrong := _wrong(row):
                raise TaskError(f"{path}:{number}: is not a row of evalchemy's NUPA: {wrong}")
            rows.append(row)
    return rows


def _wrong(row: Any) -> str:
    """What is wrong with a row; empty if it is one."""
    found = row if isinstance(row, dict) else {}
    if missing := sorted(Row.__required_keys__ - set(found)):
        return f"it has no {', '.join(missing)}"
    kinds = {name: int if name == "digit" else str for name in Row.__required_keys__}
    others = sorted(name for name, kind in kinds.items() if type(found[name]) is not kind)
    return f"{others[0]} should be {'a number' if others[0] == 'digit' else 'text'}" if others else ""
