"""Several whole numbers as one operand: the terms of a long sum. The paper has no such representation."""

import re
from dataclasses import dataclass
from typing import ClassVar

from lab.numbers.representations import Integer


@dataclass(slots=True, unsafe_hash=True)
class Integers:
    """Two or more whole numbers, written as 12+345+6."""

    values: tuple[int, ...]

    name: ClassVar[str] = "integers"
    pattern: ClassVar[re.Pattern[str]] = re.compile(r"[0-9]+(\+[0-9]+)+")
    alignment: ClassVar[tuple[str, ...]] = ("right",)

    def __str__(self) -> str:
        return "+".join(map(str, self.values))

    def sum(self) -> Integer:
        return Integer(sum(self.values))

    @classmethod
    def parse(cls, text: str) -> "Integers":
        """Reads the numbers; spaces around "+" are allowed. Raises ValueError if `text` is not of this form."""
        packed = re.sub(r"\s*\+\s*", "+", text.strip())
        if not cls.pattern.fullmatch(packed):
            raise ValueError(f"{text!r} is not of the form 12+345+6 ({cls.name})")
        return cls(tuple(map(int, packed.split("+"))))
