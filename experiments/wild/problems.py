"""Prompts whose answer is a number to compute, or is not, with what a reader should find in them.

Minimal pairs: the same two numbers in the same sentences are followed by one of many questions, and it is the question
that says what is asked: a sum, a difference, the larger number, the smaller one, or nothing that is computed.

A wording belongs to training, to validation (about a sixth, by a hash of the words) or to the test (`held_out.py`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from random import Random
from types import ModuleType
from typing import Any, NamedTuple

from experiments.wild import held_out, wordings
from lab.text import templates
from lab.text.docstrings import HELD_OUT, TRAINING, docstrings

ASKED = ("none", "sum", "distance", "larger", "smaller")
"""What is asked. A difference a - b is a sum in which b has the role "minus"."""
ROLES = ("none", "plus", "minus")
UNKNOWN = -1
CHAT = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
)


class Atom(NamedTuple):
    """A run of digits. A number like 12,345.6 has several."""

    start: int
    end: int
    joins: int
    """Whether it belongs to the same number as the run before it (1 or 0), or UNKNOWN."""
    role: int
    """Which of ROLES its number has, if it is the number's last run; otherwise UNKNOWN."""
    copied: bool
    """Whether the prompt says nothing about what stands here, so that this number is certainly not computed."""


class Prompt(NamedTuple):
    text: str
    atoms: tuple[Atom, ...]
    asked: int
    """Which of ASKED comes next."""
    answer: Fraction | None
    kind: str
    wording: str


class Style(NamedTuple):
    """How the numbers of a prompt are drawn and written."""

    lengths: tuple[int, int] = (1, 8)
    grouped: float = 0.08
    decimals: float = 0.08
    signs: float = 0.06
    chances: bool = True
    """Whether short numbers are more frequent than long ones."""


USUAL = Style()


def number(style: Style, grouped: bool, decimals: int, rng: Random) -> str:
    least, most = style.lengths
    length = rng.randint(least, min(most, 4) if style.chances and rng.random() < 0.5 else most)
    if length > 1 or decimals:
        digits = str(rng.randint(1, 9)) + "".join(str(rng.randrange(10)) for _ in range(length - 1))
    else:
        digits = str(rng.randrange(10))
    written = f"{int(digits):,}" if grouped else digits
    return written + ("." + "".join(str(rng.randrange(10)) for _ in range(decimals)) if decimals else "")


def value(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))


def right(asked: str, signed: Sequence[tuple[int, Fraction]]) -> Fraction | None:
    """What is asked of numbers with signs."""
    values = [sign * found for sign, found in signed]
    if asked == "none":
        return None
    return {"sum": sum, "larger": max, "smaller": min, "distance": lambda pair: abs(pair[0] - pair[1])}[asked](values)


class Words(NamedTuple):
    """The words of a split."""

    of: ModuleType
    split: str

    def some(self, words: Sequence[Any]) -> Sequence[Any]:
        """Those of the words that belong to the split."""
        if self.split == "test":
            return words
        kept = [word for word in words if (_hash(word) % 6 == 0) == (self.split == "validation")]
        return kept or words

    def one(self, words: Sequence[Any], rng: Random) -> Any:
        return rng.choice(self.some(words))


def _hash(word: Any) -> int:
    return int.from_bytes(sha256(repr(word).encode()).digest()[:4], "big")


def _joined(*parts: str) -> str:
    text = parts[0]
    for part in parts[1:]:
        text += part if text[-1:] in "\n " else " " + part
    return text


Made = tuple[str, str, Mapping[str, str]]
"""A template, what it asks, and the roles of its slots."""
BOTH, TAKEN, ALL = {"a": "plus", "b": "plus"}, {"a": "plus", "b": "minus"}, {"a": "plus", "b": "plus", "c": "plus"}
SIGNED = {**ALL, "c": "minus"}


def _made(template: str, asked: str, roles: Mapping[str, str]) -> Made:
    if asked == "minus":
        return template, "sum", TAKEN
    return (template, "sum", SIGNED) if asked == "signed" else (template, asked, {} if asked == "none" else roles)


def framed(words: Words, rng: Random) -> Made:
    asked = rng.choice(("sum", "distance", "larger", "smaller", "none", "none"))
    return _made(_joined(words.one(words.of.FRAMES, rng), words.one(words.of.FRAME_QUESTIONS[asked], rng)), asked, BOTH)


def changed(words: Words, rng: Random) -> Made:
    asked, (before, then) = rng.choice(("sum", "minus", "none")), words.one(words.of.CHANGES, rng)
    does = words.one(
        words.of.MORE if asked == "sum" or (rng.random() < 0.3 and asked == "none") else words.of.FEWER, rng
    )
    question = words.one(words.of.CHANGE_NONE if asked == "none" else words.of.CHANGE_QUESTIONS, rng)
    return _made(_joined(before, then.replace("{does}", does.replace("-", " ")), question), asked, BOTH)


def two_of_three(words: Words, rng: Random) -> Made:
    asked, parts = (
        rng.choice(("sum", "sum", "distance", "larger", "smaller", "none")),
        list(words.one(words.of.TWO_OF_THREE, rng)),
    )
    rng.shuffle(parts)
    return _made(_joined("".join(parts), words.one(words.of.TWO_OF_THREE_QUESTIONS[asked], rng)), asked, BOTH)


def three(words: Words, rng: Random) -> Made:
    asked = rng.choice(("sum", "sum", "larger", "smaller", "none"))
    return _made(
        _joined("".join(words.one(words.of.TWO_OF_THREE, rng)), words.one(words.of.THREE_QUESTIONS[asked], rng)),
        asked,
        ALL,
    )


def two_kinds(words: Words, rng: Random) -> Made:
    sentence, _ = words.one(words.of.TWO_KINDS, rng)
    question = words.one(words.of.TWO_KINDS_QUESTIONS, rng)
    if rng.random() < 0.3:
        return _joined(sentence, question.replace("{S}", "{T}")), "none", {}
    return _joined(sentence, question), "sum", BOTH


def plain(words: Words, rng: Random) -> Made:
    asked = rng.choice(("sum", "sum", "minus", "distance", "larger", "smaller", "none", "none", "none"))
    return _made(words.one(words.of.PLAIN[asked], rng), asked, BOTH)


def old_sums(words: Words, rng: Random) -> Made:
    """The sums in many wordings that the lab's earlier models were tuned on, or, for the test, tested with."""
    known = templates.HELD_OUT + templates.FRESH if words.split == "test" else templates.TRAINING
    return words.one(known, rng), "sum", BOTH


def three_plain(words: Words, rng: Random) -> Made:
    asked = rng.choice(("sum", "signed", "larger", "smaller", "none"))
    return _made(words.one(words.of.THREE_PLAIN[asked], rng), asked, ALL)


def table(words: Words, rng: Random) -> Made:
    asked = rng.choice(("sum", "sum", "minus", "distance", "larger", "smaller", "none", "none"))
    heading = words.one(words.of.HEADINGS[asked], rng)
    return _made(words.one(words.of.TABLES, rng).replace("{h}", heading), asked, BOTH)


def nothing(words: Words, rng: Random) -> Made:
    return words.one(words.of.NOTHING, rng), "none", {}


def chat(words: Words, rng: Random) -> Made:
    asked = rng.choice(("sum", "sum", "minus", "distance", "larger", "smaller", "none", "none"))
    # what the assistant has written so far is the model's own text in the test
    begun = "" if words.split == "test" else words.one(words.of.CHAT_ANSWERS[asked], rng)
    return _made(CHAT.format(words.one(words.of.CHAT[asked], rng)) + begun, asked, BOTH)


KINDS: dict[str, Callable[[Words, Random], Made]] = {
    made.__name__: made
    for made in (framed, changed, two_of_three, three, two_kinds, plain, old_sums, three_plain, table, nothing, chat)
}
SHARES = {
    "framed": 7,
    "changed": 5,
    "two_of_three": 16,
    "three": 1.5,
    "two_kinds": 9,
    "plain": 6,
    "old_sums": 2,
    "three_plain": 1.5,
    "table": 4,
    "nothing": 3,
    "chat": 2.5,
    "text": 1.5,
}
LEADS = (
    " about",
    " exactly",
    " a total of",
    " **",
    " $",
    " only",
    " precisely",
    " the number",
    " =",
    " as many as",
    " (",
    " the value",
    " no fewer than",
)
BREAKS = (" ", "\n", "\n\n")


def prompt(
    split: str,
    rng: Random,
    kind: str | None = None,
    style: Style = USUAL,
    asked: str | None = None,
    numbers: Mapping[str, str] | None = None,
) -> Prompt:
    """A prompt of a split, of any kind unless one is given. `asked`: what it should ask. `numbers`: what its slots
    should hold."""
    kind = kind or rng.choices(list(SHARES), list(SHARES.values()))[0]
    if kind == "text":
        return text_prompt(split, rng)
    words = Words(held_out if split == "test" else wordings, split)
    wanted = asked
    template, asked, roles = KINDS[kind](words, rng)
    while wanted and wanted != _name(asked, roles):
        template, asked, roles = KINDS[kind](words, rng)
    before = "" if kind == "chat" or rng.random() < 0.75 else _before(split, words, rng)
    after = (
        rng.choice(LEADS)
        if split != "test" and template[-1:].isalpha() and asked != "none" and rng.random() < 0.12
        else ""
    )
    return rendered(before + template + after, asked, roles, kind, words, rng, style, len(before), numbers)


def _name(asked: str, roles: Mapping[str, str]) -> str:
    return "minus" if asked == "sum" and "minus" in roles.values() else asked


def _before(split: str, words: Words, rng: Random) -> str:
    """A sentence with numbers that no question is about, or a passage, before a prompt."""
    if rng.random() < 0.5:
        return passage(split, rng).replace("{", "{{").replace("}", "}}") + rng.choice(BREAKS)
    sentence = words.one(words.of.NOTHING, rng)
    for slot in "abc":
        sentence = sentence.replace("{" + slot + "}", "{k}")
    return sentence + rng.choice((" {m}.", " {y}.", " it.")) + rng.choice(BREAKS)


def passage(split: str, rng: Random, longest: int = 200) -> str:
    text = docstrings(TRAINING if split == "train" else HELD_OUT)
    start = rng.randrange(len(text) - longest)
    return text[start : start + rng.randint(40, longest)].partition(" ")[2].strip() or "Note."


def text_prompt(split: str, rng: Random) -> Prompt:
    """A passage of ordinary text; no number in it is computed."""
    text = passage(split, rng, 400)
    atoms = tuple(
        Atom(found.start(), found.end(), UNKNOWN, ROLES.index("none"), True) for found in re.finditer("[0-9]+", text)
    )
    return Prompt(text + ("" if text[-1:].isspace() else " "), atoms, ASKED.index("none"), None, "text", "text")


def rendered(
    template: str,
    asked: str,
    roles: Mapping[str, str],
    kind: str,
    words: Words,
    rng: Random,
    style: Style,
    prefix: int,
    given: Mapping[str, str] | None,
) -> Prompt:
    """The prompt of a template: its slots filled, and its numbers marked."""
    invents = words.split == "train"  # so that words are compared, and not known
    names = (
        [invented(rng) for _ in range(3)]
        if invents and rng.random() < 0.5
        else rng.sample(words.some(words.of.NAMES), 3)
    )
    things = rng.sample(words.some(words.of.THINGS), 2)
    if invents and rng.random() < 0.25:
        things = [invented(rng).lower() + "s" for _ in range(2)]
    fill = dict(zip("PQRST", [*names, *things], strict=True))
    fill["V"] = words.one(words.of.CITIES, rng)
    can_group = not re.search(r"[\(\[,;\|]\{|\{[abc]\},\S|\}, \{b\},", template)
    grouped = can_group and rng.random() < style.grouped
    places = rng.randint(1, 3) if rng.random() < style.decimals else 0
    numbers = {slot: number(style, grouped, places if rng.random() < 0.85 else 0, rng) for slot in "abc"}
    numbers |= {slot: str(rng.randint(1000, 2050)) for slot in "yz"} | {slot: str(rng.randint(2, 99)) for slot in "km"}
    numbers |= given or {}
    minus = {slot for slot in "ab" if _may_be_negative(template, asked, kind, slot) and rng.random() < style.signs}
    text, atoms, signed = "", [], []
    for part in re.split(r"(\{\{|\}\}|\{\w\})", template):
        slot = part[1:2] if re.fullmatch(r"\{\w\}", part) else ""
        if slot in numbers:
            text += "-" if slot in minus else ""
            role = roles.get(slot, "none")
            if role != "none" and slot in minus:
                role = "minus" if role == "plus" else "plus"
            atoms += _atoms(len(text), numbers[slot], ROLES.index(role))
            if role != "none":
                signed.append((1 if role == "plus" else -1, value(numbers[slot])))
            text += numbers[slot]
        else:
            piece = fill[slot] if slot else {"{{": "{", "}}": "}"}.get(part, part)
            atoms += [
                Atom(len(text) + run.start(), len(text) + run.end(), UNKNOWN, 0, False)
                for run in re.finditer("[0-9]+", piece)
            ]
            text += piece
    if text[-1].isalnum() or text[-1] in ":=.?!&>%#" or (text.endswith(("->", "=>", "**")) and text[-1] != "*"):
        text += " "
    return Prompt(text, tuple(atoms), ASKED.index(asked), right(asked, signed), kind, template[prefix:])


def invented(rng: Random) -> str:
    """A name that nobody has."""
    return "".join(
        rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") + rng.choice(["", "", "n", "r", "l"])
        for _ in range(rng.randint(2, 3))
    ).capitalize()


def _may_be_negative(template: str, asked: str, kind: str, slot: str) -> bool:
    """Whether a sign can stand before a number: in a written-out sum or difference."""
    return (
        kind in ("plain", "three_plain", "old_sums")
        and asked == "sum"
        and bool(re.search(r"\{a\} ?[-+]|\{a\} and \{b\}|\{a\} plus|\(\{a\}", template))
        and not (slot == "b" and re.search(r"- ?\{b\}", template))
    )


def _atoms(start: int, written: str, role: int) -> list[Atom]:
    runs = list(re.finditer("[0-9]+", written))
    return [
        Atom(start + run.start(), start + run.end(), int(index > 0), role if index + 1 == len(runs) else UNKNOWN, True)
        for index, run in enumerate(runs)
    ]


if __name__ == "__main__":
    import sys

    chosen = Random(int(sys.argv[2]))
    for made in (prompt(sys.argv[1], chosen) for _ in range(int(sys.argv[3]))):
        marked = [
            (made.text[atom.start : atom.end], atom.joins, ROLES[atom.role] if atom.role >= 0 else "")
            for atom in made.atoms
        ]
        print(repr(made.text), ASKED[made.asked], made.answer, marked, made.kind, sep="\n   ")
