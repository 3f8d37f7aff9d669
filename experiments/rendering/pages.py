"""Fills the slots of a page: what stands between <!--name--> and <!--/--> is what slots.yaml computes for that name.

A table's slot stands on lines of its own. In pages outside experiments/, a slot names its finding, too:
<!--F-050 thousand-->100 % (96-100)<!--/-->.
"""

import re
from collections.abc import Callable
from pathlib import Path

from experiments.rendering.slots import Expressions, read_slots, table_of
from lab.errors import RunError

SLOT = re.compile(r"<!--((?:F-\d{3} )?[a-z0-9][\w .-]*)-->(.*?)<!--/-->", re.DOTALL)
_MARK = re.compile(r"<!--(?:/|(?:F-\d{3} )?[a-z0-9][\w .-]*)-->")
_FIRST = re.compile(r"^ {0,3}<!--[^\n>]*-->(?!<!--/-->$|$).*", re.MULTILINE)
_ID = re.compile(r"^id: (F-\d{3})$", re.MULTILINE)


class Finding:
    """The folder of a finding, and what its slots show."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.slots = read_slots(folder)
        self.expressions = Expressions(folder)

    def shown(self, slot: str) -> str:
        """What a slot shows. Raises RunError if there is no such slot, or no row for it."""
        if slot in self.slots.numbers:
            return self.expressions.text(self.slots.numbers[slot], slot)
        if slot in self.slots.tables:
            return f"\n\n{table_of(self.slots.tables[slot], slot, self.expressions)}\n"
        raise RunError(f"{self.folder / 'slots.yaml'}: no slot {slot}, which the page shows")

    def unused(self, page: str) -> set[str]:
        """The slots that the page does not show."""
        return {*self.slots.numbers, *self.slots.tables} - {found[1] for found in SLOT.finditer(page)}


def folders(experiments: Path) -> dict[str, Path]:
    """The folders of findings, by id."""
    pages = {page: _ID.search(page.read_text(encoding="utf-8")) for page in sorted(experiments.glob("*/README.md"))}
    return {found[1]: page.parent for page, found in pages.items() if found}


def filled(page: Path, shown: Callable[[str], str]) -> str:
    """The text of a page with every slot filled by `shown`. Raises RunError if a slot cannot be filled or read."""
    text = page.read_text(encoding="utf-8")
    if len(_MARK.findall(text)) != 2 * len(SLOT.findall(text)):
        raise RunError(f"{page}: a slot should be written <!--name-->...<!--/-->")
    if first := _FIRST.search(text):  # Markdown would take the line for HTML
        raise RunError(f"{page}: a line should not begin with a slot: {first[0].strip()[:60]}")

    def value(found: re.Match[str]) -> str:
        try:
            return f"<!--{found[1]}-->{shown(found[1])}<!--/-->"
        except RunError as error:
            raise RunError(f"{page}: slot {found[1]}: {error}") from None

    return SLOT.sub(value, text)


def of_any(experiments: Path) -> Callable[[str], str]:
    """What the slots show that name their finding."""
    known = folders(experiments)

    def shown(slot: str) -> str:
        number, _, name = slot.partition(" ")
        if number not in known:
            raise RunError(f"there is no finding {number}")
        return Finding(known[number]).shown(name)

    return shown
