"""The arguments of a script, key=value: its own, and those that it passes on to a config."""

from collections.abc import Collection, Mapping, Sequence

from lab.errors import ConfigError


def own(arguments: Sequence[str], *names: str) -> dict[str, str]:
    """The values of a script's own arguments, by name. Raises ConfigError for an argument that is not one of them."""
    given, others = own_and_others(arguments, *names)
    if others:
        raise ConfigError(f"{others[0]}: this script has only {', '.join(f'{name}=' for name in names)} and publish=")
    return given


def own_and_others(arguments: Sequence[str], *names: str) -> tuple[dict[str, str], list[str]]:
    """The values of a script's own arguments, by name, and all other arguments."""
    mine = [argument for argument in arguments if argument.startswith(tuple(f"{name}=" for name in names))]
    return dict(argument.split("=", 1) for argument in mine), [one for one in arguments if one not in mine]


def some_of(labels: Collection[str], only: str | None) -> list[str]:
    """The labels that `only` lists, with / between them, or all. Raises ConfigError for one that does not exist."""
    chosen = list(labels) if only is None else only.split("/")
    if unknown := [label for label in chosen if label not in labels]:
        raise ConfigError(f"only={unknown[0]}: should be some of {' / '.join(labels)}")
    return chosen


def whole_numbers(given: Mapping[str, str], name: str, usual: str) -> list[int]:
    """The whole numbers of the argument `name`, with commas between them; those of `usual` if it is not given.

    Raises ConfigError if they are not whole numbers.
    """
    text = given.get(name, usual)
    if not all(map(str.isdecimal, text.split(","))):
        raise ConfigError(f"{name}={text}: should be whole numbers, such as {name}={usual}")
    return [int(part) for part in text.split(",")]


def whole_number(given: Mapping[str, str], name: str, usual: int) -> int:
    """The whole number of the argument `name`; `usual` if it is not given. Raises ConfigError if it is none."""
    text = given.get(name, str(usual))
    if not text.isdecimal():
        raise ConfigError(f"{name}={text}: should be a whole number, such as {name}={usual}")
    return int(text)
