"""MarinSkyRL's rows of NUPA, as parquet: the training problems of its reward environment.

The training set of MarinSkyRL is every distinct text of the published file that is not in NUPA5K, sorted by task,
digits and digest. A row has a chat of one message, `reward_spec` and `extra_info`. In `reward_spec`, `ground_truth` is
JSON with the answer and its format. The reward is 1 if the answer is right in evalchemy's loose reading
(lab/benchmarks/nupa/verdicts.py), and 0 if it is wrong.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from lab.benchmarks.nupa.layouts.evalchemy import Identity
from lab.benchmarks.nupa.layouts.strata import SOURCE, Facts, Origin, Texts, digest, facts
from lab.errors import TaskError, in_one_line

if TYPE_CHECKING:
    from pyarrow import Schema

_GROUP = 50_000
"""Rows of one group of the parquet file."""


class RewardSpec(TypedDict):
    method: str
    ground_truth: str
    """JSON with the answer and its format."""


class ExtraInfo(Origin):
    source_sha256: str
    """The digest of the text."""


class Row(TypedDict):
    data_source: str
    prompt: list[dict[str, str]]
    env_class: str
    reward_spec: RewardSpec
    extra_info: ExtraInfo


def rows(texts: Texts, held_out: Iterable[Identity]) -> Iterator[Row]:
    """A row for each distinct text, sorted by task, digits and digest.

    Args:
        texts: a published file.
        held_out: the texts to leave out, such as those of NUPA5K.
    """
    out = set(held_out)
    strata = {(task, int(digits)): group for task, groups in texts.items() for digits, group in groups.items()}
    for (task, digits), group in sorted(strata.items()):
        for sha256, text in sorted({digest(text): text for text in group}.items()):
            if Identity(task, digits, sha256) not in out:
                yield _row(facts(task, digits, texts[task], text), sha256)


def _row(said: Facts, sha256: str) -> Row:
    truth = {name: said[name] for name in ("answer", "answer_format")}
    about = {name: said[name] for name in Origin.__annotations__}
    return {
        "data_source": SOURCE,
        "prompt": [{"role": "user", "content": said["prompt"]}],
        "env_class": "nupa",
        "reward_spec": {"method": "rule", "ground_truth": json.dumps(truth)},
        "extra_info": cast(ExtraInfo, {**about, "source_sha256": sha256}),
    }


def write(found: Iterable[Row], path: Path) -> int:
    """Writes rows, and returns how many."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    count, schema, left = 0, _schema(), iter(found)
    with ParquetWriter(path, schema) as writer:
        while group := list(islice(left, _GROUP)):
            writer.write_table(pyarrow.Table.from_pylist(group, schema))
            count += len(group)
    return count


def read(path: Path) -> list[Row]:
    """The rows of a file. Raises TaskError if it is not parquet or has other columns."""
    import pyarrow
    from pyarrow.parquet import read_table

    try:
        table = read_table(path)
    except FileNotFoundError:
        raise TaskError(f"{path}: No such file or directory") from None
    except (OSError, pyarrow.ArrowException) as error:
        raise TaskError(f"{path}: {in_one_line(error)}") from None
    if missing := [name for name in _schema().names if name not in table.column_names]:
        raise TaskError(f"{path}: does not have MarinSkyRL's layout: it has no column {', '.join(missing)}")
    rows = cast(list[Row], table.to_pylist())
    for number, row in enumerate(rows, start=1):
        if not _is_question(row):
            what = "prompt should end in a message with content, and extra_info have task_name and digit"
            raise TaskError(f"{path}: row {number} does not have MarinSkyRL's layout: {what}")
    return rows


def _is_question(row: Row) -> bool:
    try:
        content, about = row["prompt"][-1]["content"], row["extra_info"]
        return isinstance(content, str) and isinstance(about["task_name"], str) and isinstance(about["digit"], int)
    except (KeyError, IndexError, TypeError):
        return False


def ground_truth(spec: RewardSpec) -> tuple[str, str]:
    """The answer and its format in a row's `reward_spec`. Raises TaskError if they are not there."""
    try:
        truth = json.loads(spec["ground_truth"])
        return truth["answer"], truth["answer_format"]
    except (ValueError, KeyError, TypeError):
        raise TaskError(f"reward_spec should have a ground_truth with answer and answer_format: {spec!r}") from None


def _schema() -> "Schema":
    import pyarrow

    text, digits = pyarrow.string(), pyarrow.int64()
    return pyarrow.schema(
        {
            "data_source": text,
            "prompt": pyarrow.list_(pyarrow.struct({"role": text, "content": text}.items())),
            "env_class": text,
            "reward_spec": pyarrow.struct({"method": text, "ground_truth": text}.items()),
            "extra_info": pyarrow.struct(
                [(name, digits if name == "digit" else text) for name in ExtraInfo.__annotations__]
            ),
        }
    )
