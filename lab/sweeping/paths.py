"""The paths of `ValuesResults`: how they find values in the JSON files of a run, and how they are checked before it."""

from collections.abc import Iterator, Sequence
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from lab.benchmarks.nupa.summary import DOMAINS, RANGES
from lab.benchmarks.results import CostSummary, Scores, Summary, TaskSummary
from lab.config.cost import CostConfig
from lab.config.evaluation import EvaluateConfig, NupaConfig
from lab.config.finetuning import FinetuneConfig
from lab.config.pretraining import PretrainConfig
from lab.config.schema import RunConfig, TaskNames, chosen
from lab.errors import ConfigError, RunError
from lab.numbers.statistics import Estimate
from lab.probing.config import ProbeConfig
from lab.runs import Run
from lab.smallest_adder.config import AdderConfig
from lab.sweeping.config import ValuesResults

_ANY = "*"


def found(run: Run, path: str, share: bool) -> list[Any]:
    """What `path` matches in a finished run: estimates as JSON and, unless `share`, other numbers. Raises `RunError` if
    it matches nothing."""
    file, keys = _split(path)
    tree = run.read_json(file)
    values = _values(tree, keys, share)
    if not values:
        raise RunError(f"{run.path}: results: {_nothing(tree, keys, share)}")
    return values


def check_paths(results: ValuesResults, config: RunConfig) -> None:
    """Raises `ConfigError`, with one line for each path that will match nothing in a finished run of `config`."""
    shares, means = results.shares.values(), results.means.values()
    wrong = [_mistake(path, share, config) for paths, share in ((shares, True), (means, False)) for path in paths]
    if any(wrong):
        raise ConfigError("\n".join(filter(None, wrong)))


def _mistake(path: str, share: bool, config: RunConfig) -> str:
    file, keys = _split(path)
    files = _files(config)
    if file not in files:
        return f"results: {path}: lab {config.COMMAND} does not write {file}.json, but {', '.join(files)}"
    known = files[file]
    return "" if known is None or _values(known, keys, share) else f"results: {_nothing(known, keys, share)}"


def is_estimate(value: Any) -> bool:
    return isinstance(value, dict) and {"value", "low", "high", "n"} <= value.keys()


def _split(path: str) -> tuple[str, list[str]]:
    file, _, keys = path.rpartition(":")
    return file or "summary", keys.split(".")


def _values(tree: Any, keys: Sequence[str], share: bool) -> list[Any]:
    return [part for part in _at(tree, keys) if is_estimate(part) or (_is_number(part) and not share)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _at(tree: Any, keys: Sequence[str]) -> Iterator[Any]:
    """All values at `keys` in a tree of mappings and lists."""
    if not keys:
        yield tree
        return
    for key, below in _children(tree).items():
        if keys[0] == key or _ANY in (keys[0], key):
            yield from _at(below, keys[1:])


def _children(tree: Any) -> dict[str, Any]:
    items = enumerate(tree) if isinstance(tree, list) else tree.items() if isinstance(tree, dict) else ()
    return {str(key): below for key, below in items}


def _nothing(tree: Any, keys: Sequence[str], share: bool) -> str:
    """An error for keys that match nothing: how far they lead, and how they could continue."""
    reached = next(place for place in range(len(keys), -1, -1) if list(_at(tree, keys[:place])))
    there = ", ".join(list(_children(next(_at(tree, keys[:reached]))))[:12])
    what = f"there is no {'proportion with its n' if share else 'figure'} at {'.'.join(keys)}"
    return f"{what}; {'.'.join(keys[:reached]) or 'the file'} has {there or 'no keys'}"


# What a run will contain


def _files(config: RunConfig) -> dict[str, Any]:
    """An outline of each JSON file that a run will write, by its name; None if its content is only known then."""
    others = dict.fromkeys(("environment", "left_out", "throughput"))
    if isinstance(config, ProbeConfig):
        return dict.fromkeys(f"probe_{name}" for name in ("competence", *config.instruments)) | others
    return {"summary": _summary(config), **others}


def _summary(config: RunConfig) -> dict[str, Any]:
    """The outline of summary.json: 0 for each number, and * for keys that are only known after the run."""
    match config:
        case FinetuneConfig():
            return dict.fromkeys(("before", "after"), _nupa(config.data.tasks))
        case PretrainConfig():
            curve = dict.fromkeys(map(str, config.evaluation.lengths), _outline(Scores))
            return {"lengths": {task.key: curve for task in chosen(config.data.tasks)}}
        case EvaluateConfig(benchmark=NupaConfig() as nupa):
            return {"nupa": _nupa(nupa.tasks)}
        case EvaluateConfig():
            kind = config.benchmark.kind
            return {kind: _outline(Summary.model_fields[kind].annotation)}
        case CostConfig():
            return _outline(CostSummary)
        case AdderConfig():
            numbers = dict.fromkeys(("parameters", "accuracy", "loss", "seed", "step"), 0)
            return {**numbers, "exact_match": _outline(Estimate)}
    raise AssertionError(f"a sweep cannot run {type(config).__name__}")


def _nupa(tasks: TaskNames) -> dict[str, Any]:
    outline = _outline(TaskSummary)
    for part, names in (("ranges", RANGES), ("domains", DOMAINS)):
        outline[part] = dict.fromkeys(names, outline[part][_ANY])
    return {task.key: outline for task in chosen(tasks)}


def _outline(kind: Any) -> Any:
    """The JSON of a value of this type, with all its optional parts."""
    if kind is Estimate:
        return Estimate(0, 0, 0, 0).to_json()
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: _outline(field.annotation) for name, field in kind.model_fields.items()}
    parts = [part for part in get_args(kind) if part is not NoneType]
    if get_origin(kind) is dict:
        return {_ANY: _outline(parts[1])}
    if get_origin(kind) is tuple:
        return [_outline(part) for part in parts]
    return _outline(parts[0]) if parts else kind()  # the type in X | None and in Annotated[X, ...]
