"""The grammar that all commands share, and the console script `lab` that starts them.

    lab COMMAND CONFIG [key.sub=value ...] [smoke=true] [--dry-run]
    lab COMMAND --help
    lab list tasks | models | configs | runs
    lab --version

CONFIG is a YAML file, or the name of a config that comes with the lab: smollm2_lora is configs/smollm2_lora.yaml.
smoke=true shortens the job to seconds, to show that it runs from end to end. --dry-run prints the resolved config and
stops. `python -m lab.COMMAND` is the same as `lab COMMAND`.
"""

import importlib
import importlib.metadata
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator

from lab.config.commands import command_of, foreign_command
from lab.config.describing import did_you_mean, help_text
from lab.config.loading import dump, keys_of, load
from lab.config.schema import Section
from lab.errors import ConfigError, exit_cleanly
from lab.shipped import shipped_configs

Config = TypeVar("Config", bound=Section)

COMMANDS = {
    "finetune": "tune a pretrained model on NUPA and show what it gained",
    "pretrain": "train a small model from scratch and show up to which length it is right",
    "evaluate": "measure a model on a benchmark, or compare runs",
    "cost": "compare the cost of rule-following chain of thought with direct answers",
    "probe": "look inside a model and measure how it adds",
    "sweep": "run a command over a grid of settings and seeds",
    "adder": "train, verify and rank the smallest adders",
    "report": "make one offline site of many runs",
    "ask": "ask any model a question",
    "export": "write a model as files for other programs",
    "list": "list the tasks, models, configs or runs",
}


def entry_point(main: Callable[[list[str]], None]) -> Callable[..., None]:
    """Decorates a command's ``main``, whose argument is the list of words after the command. If it is called without an
    argument, it gets the words of the command line. Errors end it as in `exit_cleanly`."""

    @exit_cleanly
    def run(argv: Sequence[str] | None = None) -> None:
        main(list(sys.argv[1:] if argv is None else argv))

    return run


@entry_point
def main(arguments: list[str]) -> None:
    """The console script: the first word is a command, the rest are its arguments."""
    if not arguments or arguments[0] in ("-h", "--help"):
        width = max(map(len, COMMANDS))
        print(__doc__, *(f"    {name:{width}}  {about}" for name, about in COMMANDS.items()), sep="\n")
        return
    name = arguments.pop(0)
    if name == "--version":
        print(f"number-lab {importlib.metadata.version('number-lab')}")
        return
    if name not in COMMANDS:
        hint = did_you_mean(name, list(COMMANDS)) or "."
        raise ConfigError(f"no command {name!r}{hint} Commands: {', '.join(COMMANDS)}")
    importlib.import_module(f"lab.{name}").main(arguments)


def read_config(
    schema: type[Config],
    arguments: Sequence[str],
    command: str,
    description: str,
    metavar: str = "CONFIG",
    plan: Callable[[Config], str] | None = None,
) -> Config:
    """The config that ``CONFIG [key.sub=value ...]`` stands for.

    Args:
        schema: the pydantic model of the config; its `SMOKE` says what smoke=true changes.
        arguments: the words after the command.
        command: the words that start the command, such as ``lab finetune``; they appear in the help.
        description: text of the help that describes the command.
        metavar: the name of the config in the usage line.
        plan: what a dry run says of the job, below its config.

    Prints and exits with status 0 for ``--help`` (every key) and ``--dry-run`` (the resolved config). Raises
    `ConfigError` if no config is given or it cannot be loaded.
    """
    usage = f"usage: {command} {metavar} [key.sub=value ...] {'[smoke=true] ' if schema.SMOKE else ''}[--dry-run]"
    _help_if_asked(arguments, usage, description, schema)
    if not arguments or "=" in arguments[0] or arguments[0].startswith("-"):
        raise ConfigError(f"the first argument must be a config: a file, or the name of a shipped one; {usage}")
    words = [word for word in arguments[1:] if word != "--dry-run"]
    config = _load(schema, arguments[0], with_smoke(schema, words), command)
    if "smoke=true" in words and not any(word.startswith("name=") for word in words):
        config = config.model_copy(update={"name": f"{config.name}_smoke"})  # type: ignore[attr-defined]
    if "--dry-run" in arguments:
        print(dump(config), end="")
        if plan:
            print(*(f"# {line}" for line in plan(config).splitlines()), sep="\n")
        raise SystemExit(0)
    return config


def read_options(
    schema: type[Config], arguments: Sequence[str], command: str, description: str, metavars: str = ""
) -> tuple[list[str], Config]:
    """The words and options in ``[WORD ...] [key=value ...]``, for a command that needs no config file.

    Args:
        schema: the pydantic model of the options.
        arguments: the words after the command.
        command: the words that start the command, such as ``lab ask``; they appear in the help.
        description: text of the help that describes the command.
        metavars: the names of the words in the usage line.

    Prints the help and exits with status 0 for ``--help``. Raises `ConfigError` if an option is unknown or has a wrong
    value.
    """
    usage = f"usage: {command} {metavars} [key=value ...]"
    _help_if_asked(arguments, usage, description, schema)
    if unknown := [word for word in arguments if re.match("--?[a-zA-Z]", word)]:
        raise ConfigError(f"{unknown[0]}: options are written key=value; {usage}")
    words = [word for word in arguments if is_word(word)]
    return words, load(schema, None, [word for word in arguments if word not in words])


_MANY = 3
"""A config with so many mistakes is probably one of another command."""


def _load(schema: type[Config], name: str, words: Sequence[str], command: str) -> Config:
    """Like `load`, but the `ConfigError` for a config of another command has one line, which names the command.

    Args:
        schema: the pydantic model of the config.
        name: the config's file or name.
        words: the overrides.
        command: the words that start the command, such as ``lab finetune``.
    """
    path, own = find_config(name), getattr(schema, "COMMAND", command.split()[-1])
    keys = keys_of(path)
    other = foreign_command(keys, schema.model_fields)
    try:
        if not other:
            return load(schema, path, words)
    except ConfigError as error:
        if str(error).count("\n") + 1 < _MANY or command_of(keys) in (None, own):
            raise
        other = command_of(keys)
    if other == own:  # such as lab probe benchmark, whose configs are its own
        return load(schema, path, words)
    how = f"lab {other}{' train' if other == 'adder' else ''} {name}"
    raise ConfigError(f"{name}: a config of lab {other}, not of {command}; this starts it: {how}")


def _help_if_asked(arguments: Sequence[str], usage: str, description: str, schema: type[Section]) -> None:
    if {"--help", "-h"} & set(arguments):
        print(usage, description, help_text(schema), sep="\n\n")
        raise SystemExit(0)


def _no_run(folder: Path) -> Path:
    if folder == Path() or (folder.exists() and (not folder.is_dir() or (folder / "config.yaml").exists())):
        raise ValueError("should be a new folder, or one that is not a run directory")
    return folder


ResultsFolder = Annotated[Path, AfterValidator(_no_run)]
"""A folder for tables and figures, for a command's options."""


def with_smoke(schema: type[Section], overrides: Sequence[str]) -> list[str]:
    """The overrides, with smoke=true replaced by what it stands for. The user's own overrides come last, so they win.

    Raises `ConfigError` if the command has no smoke version.
    """
    if "smoke=true" not in overrides:
        return list(overrides)
    if not schema.SMOKE:
        raise ConfigError("smoke=true: this command has no small version")
    named = any(word.startswith("name=") for word in overrides)  # a run of the user's own, which nothing may replace
    again = [] if named or "resume=true" in overrides else ["overwrite=true"]
    return [*schema.SMOKE, *again, *(word for word in overrides if word != "smoke=true")]


def find_config(name: str) -> Path:
    """The file of a config that is given by its path or by the name of a shipped config.

    A file in the current folder comes first. Raises `ConfigError` if there is no such config.
    """
    if (path := Path(name)).suffix in (".yaml", ".yml") and (_exists(path) or path.parent != Path()):
        return path
    shipped = shipped_configs()
    found = shipped.get(name.removesuffix(".yaml"))
    if not found:
        hint = did_you_mean(name, list(shipped)) or "."
        raise ConfigError(f"{name}: neither a YAML file nor a shipped config{hint} `lab list configs` lists them")
    return found


def is_word(argument: str) -> bool:
    """Whether an argument is neither an option nor key=value."""
    return not re.match(r"--?[a-zA-Z]|[A-Za-z_][\w.\[\]]*=", argument) or ("=" in argument and _exists(Path(argument)))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # the name is too long for a file
        return False


def is_config(word: str) -> bool:
    """Whether a word names a config rather than a run: a YAML file, or the name of a shipped config."""
    return word.endswith((".yaml", ".yml")) or word in shipped_configs()


if __name__ == "__main__":
    main()
