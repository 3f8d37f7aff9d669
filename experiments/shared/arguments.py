"""The arguments of a script (key=value): its own, and those that it passes on to a config."""

import re
from collections.abc import Collection, Mapping, Sequence

from lab.errors import ConfigError


def own(arguments: Sequence[str], *names: str) -> dict[str, str]:
    """The values of a script's own arguments, by name. Raises ConfigError for an argument that is not one of them."""
    given, others = own_and_others(arguments, *names)
    if others:
        known = ", ".join(f"{name}=" for name in names)
        raise ConfigError(f"{others[0]}: this script has {f'only {known}' if names else 'no arguments'}")
    return given


def own_and_listed(arguments: Sequence[str], what: str, *names: str) -> tuple[dict[str, str], list[str]]:
    """The values of a script's own arguments, by name, and the items that the arguments without = list, separated by
    commas.

    Raises ConfigError for an argument that is not one of them, or if nothing is listed; `what` says what should be.
    """
    given = own([argument for argument in arguments if "=" in argument], *names)
    listed = [one for argument in arguments if "=" not in argument for one in argument.split(",") if one]
    if not listed:
        raise ConfigError(f"nothing to measure: give {what}, with commas between them")
    return given, listed


def own_and_others(arguments: Sequence[str], *names: str) -> tuple[dict[str, str], list[str]]:
    """The values of a script's own arguments, by name, and all other arguments."""
    mine = [argument for argument in arguments if argument.startswith(tuple(f"{name}=" for name in names))]
    return dict(argument.split("=", 1) for argument in mine), [one for one in arguments if one not in mine]


def some_of(labels: Collection[str], only: str | None, name: str = "only", between: str = "/") -> list[str]:
    """The labels that the argument `name` lists, separated by `between`, or all labels. Raises ConfigError for a label
    that does not exist."""
    chosen = list(labels) if only is None else only.split(between)
    if unknown := [label for label in chosen if label not in labels]:
        known = (" / " if between == "/" else f"{between} ").join(labels)
        raise ConfigError(f"{name}={unknown[0]}: should be some of {known}")
    return chosen


def one_of(labels: Collection[str], given: Mapping[str, str], name: str, usual: str) -> str:
    """The label that the argument `name` gives; `usual` if it is not given. Raises ConfigError if the label does not
    exist."""
    text = given.get(name, usual)
    if text not in labels:
        raise ConfigError(f"{name}={text}: should be one of {', '.join(labels)}")
    return text


def true_or_false(given: Mapping[str, str], name: str, usual: bool) -> bool:
    """Whether the argument `name` is true; `usual` if it is not given. Raises ConfigError if it is neither."""
    text = given.get(name, str(usual).lower())
    if text not in ("true", "false"):
        raise ConfigError(f"{name}={text}: should be true or false")
    return text == "true"


def whole_numbers(given: Mapping[str, str], name: str, usual: str) -> list[int]:
    """The whole numbers that the argument `name` lists, separated by commas; those of `usual` if it is not given.

    Raises ConfigError if they are not whole numbers.
    """
    text = given.get(name, usual)
    if not all(map(str.isdecimal, text.split(","))):
        raise ConfigError(f"{name}={text}: should be whole numbers, such as {name}={usual}")
    return [int(part) for part in text.split(",")]


def whole_number(given: Mapping[str, str], name: str, usual: int) -> int:
    """The whole number that the argument `name` gives; `usual` if it is not given. Raises ConfigError if it is not a
    whole number."""
    text = given.get(name, str(usual))
    if not text.isdecimal():
        raise ConfigError(f"{name}={text}: should be a whole number, such as {name}={usual}")
    return int(text)


def counts(given: Mapping[str, str], name: str, usual: str, otherwise: int | None = None) -> dict[int, int]:
    """The number of problems that the argument `name` gives for each length: 50x12 means 12 problems of 50 digits. A
    length alone stands for `otherwise` problems. `usual` is read if the argument is not given. Raises ConfigError if it
    is written in another way."""
    text = given.get(name, usual)
    found = [re.fullmatch(r"(\d+)(?:x(\d+))?", part) for part in text.split(",")]
    if not all(one and (one[2] or otherwise) for one in found):
        raise ConfigError(f"{name}={text}: should be lengths and how many of each, such as {name}={usual}")
    return {int(one[1]): int(one[2] or otherwise or 0) for one in found if one}
