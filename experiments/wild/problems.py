"""Prompts whose answer is a number to compute, or is not, with what a reader should find in them.

Minimal pairs: the same numbers in the same sentences are followed by several questions, and it is the question that
says what is asked: a sum, a difference, the larger number, the smaller one, or nothing that is computed. So prompts
are made in groups that begin alike.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

from experiments.wild.wordings import wordings
from lab.second_reading.reader import ASKED, ROLES
from lab.text.docstrings import HELD_OUT, TRAINING, docstrings

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
    told: int
    """How many characters come before anything is asked."""


class Style(NamedTuple):
    """How the numbers of a prompt are drawn and written."""

    lengths: tuple[int, int] = (1, 6)
    grouped: float = 0.08
    decimals: float = 0.1
    signs: float = 0.08
    chances: bool = True
    """Whether short numbers are more frequent than long ones."""


USUAL = Style()


class Question(NamedTuple):
    """A template of what follows a frame, and what it asks: a key of `wordings.yaml`."""

    text: str
    key: str


def number(style: Style, grouped: bool, decimals: int, rng: Random) -> str:
    least, most = style.lengths
    length = rng.randint(least, min(most, 4) if style.chances and rng.random() < 0.6 else most)
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


def meaning(key: str) -> tuple[str, dict[str, int]]:
    """What a key asks, and the sign of each slot that it asks about: "sum a -b" is a sum of a with sign 1 and b with
    sign -1."""
    asked, *slots = key.split()
    return asked, {slot.strip("-"): -1 if slot.startswith("-") else 1 for slot in slots}


class Slots(NamedTuple):
    """What the slots of a group's templates hold."""

    words: Mapping[str, str]
    numbers: Mapping[str, str]
    negative: frozenset[str]
    """The numbers with a sign before them."""

    def answer(self, key: str) -> Fraction | None:
        asked, signs = meaning(key)
        return right(asked, [(self.sign(slot, sign), value(self.numbers[slot])) for slot, sign in signs.items()])

    def sign(self, slot: str, sign: int) -> int:
        return -sign if slot in self.negative else sign


def drawn_slots(split: str, rng: Random, style: Style, template: str, given: Mapping[str, str] | None = None) -> Slots:
    """What the slots hold of templates like this one; `given` are numbers that are told."""
    words, invents = wordings(split), split == "training"  # so that words are compared, and not known
    names, things = rng.sample(words["names"], 3), rng.sample(words["things"], 2)
    if invents and rng.random() < 0.3:
        names = [invented(rng) for _ in range(3)]
    if invents and rng.random() < 0.2:
        things = [invented(rng).lower() + "s" for _ in range(2)]
    cities = rng.sample(words["cities"], 3)
    can_group = not re.search(r"[\(\[,;\|]\{|\{[abcd]\},\S|\}, \{[bcd]\},|\{b\}, ", template)
    grouped = can_group and rng.random() < style.grouped
    places = rng.randint(1, 3) if rng.random() < style.decimals else 0
    numbers = {slot: number(style, grouped, places if rng.random() < 0.85 else 0, rng) for slot in "abcd"}
    numbers |= {slot: str(rng.randint(1000, 2050)) for slot in "yz"} | {
        slot: str(rng.randint(2, 99)) for slot in "klmn"
    }
    numbers |= {"x": str(rng.randrange(100, 10 ** rng.randint(3, 7)))} | dict(given or {})
    negative = frozenset(slot for slot in "ab" if _may_be_negative(template, slot) and rng.random() < style.signs)
    return Slots(dict(zip("PQRSTVWX", [*names, *things, *cities], strict=True)), numbers, negative)


def _may_be_negative(template: str, slot: str) -> bool:
    """Whether a sign can stand before a number: in a written-out sum, difference or comparison."""
    return (
        bool(re.search(r"\{a\} ?[-+]|\{a\} and \{b\}|\{a\} (plus|minus|or) |\(\{a\}|\{a\}, \{b\}", template))
        and not re.search(r"\{[PST]\}|[$\w]\{", template)
        and not (slot == "b" and re.search(r"[-+] ?\{b\}", template))
    )


def one(templates: Sequence[str], rng: Random) -> str:
    """One of the templates, with one of the words of each [[choice|of words]] in it. Those with choices come more
    often."""
    return worded(rng.choices(templates, [1 + 2 * text.count("[[") for text in templates])[0], rng)


def worded(text: str, rng: Random) -> str:
    while found := re.search(r"\[\[((?:(?!\[\[|\]\]).)*)\]\]", text, re.DOTALL):
        text = text[: found.start()] + rng.choice(found[1].split("|")) + text[found.end() :]
    return text


def invented(rng: Random) -> str:
    """A name that nobody has."""
    return "".join(
        rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") + rng.choice(["", "", "n", "r", "l"])
        for _ in range(rng.randint(2, 3))
    ).capitalize()


def filled(template: str, key: str, kind: str, slots: Slots, told: str = "") -> Prompt:
    """The prompt of a template: its slots filled, and its numbers marked. `told`: the part before anything is asked."""
    asked, signs = meaning(key)
    text, atoms, end = "", [], 0
    mentions: dict[str, int] = {}
    for part in re.split(r"(\{\{|\}\}|\{\w\})", template):
        slot = part[1:2] if re.fullmatch(r"\{\w\}", part) else ""
        if slot in slots.numbers:
            text += "-" if slot in slots.negative else ""
            if slot in mentions:  # the last mention counts, as in "Add 3 and 5: 3 + 5 ="
                atoms[mentions[slot]] = atoms[mentions[slot]]._replace(role=ROLES.index("none"))
            atoms += _atoms(len(text), slots.numbers[slot], _role(slot, signs, slots))
            text, mentions[slot] = text + slots.numbers[slot], len(atoms) - 1
        else:
            piece = slots.words[slot] if slot else {"{{": "{", "}}": "}"}.get(part, part)
            atoms += [
                Atom(len(text) + run.start(), len(text) + run.end(), UNKNOWN, 0, False)
                for run in re.finditer("[0-9]+", piece)
            ]
            text += piece
    if told:
        end = len(filled(told, "none", kind, slots).text.rstrip())
    if text[-1].isalnum() or text[-1] in ":=.?!&>%#," or (text.endswith(("->", "=>", "**")) and text[-1] != "*"):
        text += " "
    return Prompt(text, tuple(atoms), ASKED.index(asked), slots.answer(key), kind, end)


def cut(prompt: Prompt, rng: Random) -> Prompt | None:
    """The beginning of a prompt, up to a word or number before anything is asked: no number that comes there is
    computed. None if there is none."""
    ends = [found.start() for found in re.finditer(r"(?<=\S) (?=\S)", prompt.text[: prompt.told])]
    if not ends:
        return None
    end = rng.choice(ends)
    atoms = tuple(atom._replace(role=min(atom.role, 0)) for atom in prompt.atoms if atom.end <= end)
    return Prompt(prompt.text[: end + 1], atoms, ASKED.index("none"), None, "cut", end)


def _role(slot: str, signs: Mapping[str, int], slots: Slots) -> int:
    if slot not in signs:
        return ROLES.index("none")
    return ROLES.index("plus" if slots.sign(slot, signs[slot]) > 0 else "minus")


def _atoms(start: int, written: str, role: int) -> list[Atom]:
    runs = list(re.finditer("[0-9]+", written))
    return [
        Atom(start + run.start(), start + run.end(), int(index > 0), role if index + 1 == len(runs) else UNKNOWN, True)
        for index, run in enumerate(runs)
    ]


def _joined(*parts: str) -> str:
    text = parts[0]
    for part in parts[1:]:
        text += part if not part or text[-1:] in "\n " or part[0] in "\n " else " " + part
    return text


def scene(split: str, name: str, rng: Random, style: Style, size: int, given: Mapping[str, str] | None) -> list[Prompt]:
    """A frame, such as "Ann has 3 apples, Bob 5.", followed by each of several questions."""
    words = wordings(split)["scenes"][name]
    slots_of = lambda frame: drawn_slots(split, rng, style, frame, given)  # noqa: E731
    verb_key = rng.choice(list(words["does"])) if "does" in words else ""
    frame = rng.choice(words["frames"])
    frame = worded(frame if isinstance(frame, str) else "".join(rng.sample(frame, len(frame))), rng)
    if verb_key:
        frame = frame.replace("{does}", rng.choice(words["does"][verb_key]))
    slots, before = slots_of(frame), _before(split, rng) if rng.random() < 0.2 else ""
    frame = before + _with_asides(split, frame, rng)
    chats = rng.random() < 0.2
    return [_asked_of(split, name, frame, words, verb_key, slots, chats, rng) for _ in range(size)]


def _asked_of(
    split: str, name: str, frame: str, words: Any, verb_key: str, slots: Slots, chats: bool, rng: Random
) -> Prompt:
    question = _question(split, words, verb_key, rng, chats)
    if chats:
        begun = wordings(split).get("chat_answers", {}).get(question.key, [""])
        start, end = CHAT.split("{}")
        told = start + frame
        return filled(_joined(told, question.text) + end + rng.choice(begun), question.key, f"chat {name}", slots, told)
    told, parts = frame, [frame]
    if rng.random() < 0.1:  # another question has been answered before
        earlier = _question(split, words, verb_key, rng, False)
        answer = slots.answer(earlier.key)
        if answer is not None and answer.denominator == 1 and earlier.text[-1] not in '"(':
            parts.append(f"{earlier.text} {answer}" + rng.choice([".", ".", "\n", ";"]))
    elif rng.random() < 0.12:
        parts.append(_aside(split, rng))
    text = _joined(*parts, question.text)
    if text[-1:].isalpha() and question.key != "none" and split == "training" and rng.random() < 0.1:
        text += rng.choice(LEADS)
    return filled(text, question.key, name, slots, told)


def _question(split: str, words: Any, verb_key: str, rng: Random, asks: bool) -> Question:
    """One of a scene's questions, or, unless it `asks`, of the sentences that a number completes."""
    kinds = [words[kind] for kind in ("completions", "questions") if kind in words]
    group = kinds[-1] if asks else rng.choice(kinds)
    keys = list(group)
    key = "none" if rng.random() < 0.35 else rng.choices(keys, [_weight(key) for key in keys])[0]
    text = one(group[key], rng)
    if len(kinds) > 1 and group is kinds[-1] and not asks:
        text = rng.choice(wordings(split)["question_marks"]) + text + rng.choice(wordings(split)["leads"])
    return Question(text, verb_key if key == "does" else key)


def _weight(key: str) -> float:
    return 2 if key == "sum a b" else 1


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
    " now",
    ":",
    " therefore",
)
BREAKS = (" ", "\n", "\n\n")


def _aside(split: str, rng: Random) -> str:
    """A sentence that no question is about, with its own numbers."""
    text = one(wordings(split)["asides"], rng)
    for slot in "klmn":
        text = text.replace("{" + slot + "}", str(rng.randint(2, 99)))
    for slot in "yz":
        text = text.replace("{" + slot + "}", str(rng.randint(1000, 2050)))
    return text.replace("{x}", str(rng.randrange(100, 10 ** rng.randint(3, 7))))


def _with_asides(split: str, frame: str, rng: Random) -> str:
    """A frame with a sentence before, between or behind its own, sometimes."""
    for _ in range(rng.choices((0, 1, 2), (0.6, 0.3, 0.1))[0]):
        ends = [0, *(found.end() for found in re.finditer(r"\. |\.$|\n", frame))]
        at = rng.choice([*ends, len(frame) if frame[-1] in ".\n " else 0])
        after = frame[at:].lstrip(" ")
        frame = _joined(*(part for part in (frame[:at], _aside(split, rng), after) if part))
    return frame


def _before(split: str, rng: Random) -> str:
    """A sentence with numbers that no question is about, or a passage, before a prompt."""
    if rng.random() < 0.5:
        return passage(split, rng).replace("{", "{{").replace("}", "}}") + rng.choice(BREAKS)
    sentence = rng.choice(wordings(split)["nothing"])
    for slot in "abc":
        sentence = sentence.replace("{" + slot + "}", "{k}")
    for slot in "PQRST":
        sentence = sentence.replace("{" + slot + "}", "{V}" if slot in "PQR" else "things")
    return sentence + rng.choice((" {m}.", " {y}.", " it.")) + rng.choice(BREAKS)


def _examples(split: str, rng: Random) -> str:
    """One to three questions with their answers, before another one."""
    between, text = rng.choice((".\n", "\n", ". ", "\n\n", "; ", ", ")), ""
    template = rng.choice(wordings(split)["examples"])
    for _ in range(rng.randint(1, 3)):
        one, other = (rng.randrange(10 ** rng.randint(1, 4)) for _ in range(2))
        known = {"i": one, "j": other, "s": one + other, "t": one - other, "u": abs(one - other), "v": max(one, other)}
        example = worded(template, rng)
        for slot, number in known.items():
            example = example.replace("{" + slot + "}", str(number))
        text += example + between
    return text


def passage(split: str, rng: Random, longest: int = 160) -> str:
    text = docstrings(TRAINING if split == "training" else HELD_OUT)
    start = rng.randrange(len(text) - longest)
    return text[start : start + rng.randint(40, longest)].partition(" ")[2].strip() or "Note."


def _alone(template: str, key: str, kind: str, split: str, rng: Random, style: Style, given: Any) -> Prompt:
    """A template that is a prompt of its own."""
    before = _before(split, rng) if kind != "chat" and rng.random() < 0.2 else ""
    if kind in ("plain", "expression") and rng.random() < 0.12:
        before += _examples(split, rng)
    slots = drawn_slots(split, rng, style, template, given)
    ends = key != "none" and split == "training" and template[-1:].isalpha() and rng.random() < 0.1
    return filled(before + template + (rng.choice(LEADS) if ends else ""), key, kind, slots)


def _keyed(words: Mapping[str, Sequence[str]], rng: Random, none: float = 0.4) -> Question:
    keys = [key for key in words if key != "none"]
    weights = [4 if key == "sum a b" else 2 if key.endswith("a b") or key == "sum a -b" else 1 for key in keys]
    key = "none" if rng.random() < none else rng.choices(keys, weights)[0]
    return Question(one(words[key], rng), key)


def plain(split: str, rng: Random, style: Style, given: Any = None) -> Prompt:
    text, key = _keyed(wordings(split)["plain"], rng)
    return _alone(text, key, "plain", split, rng, style, given)


def table(split: str, rng: Random, style: Style, given: Any = None) -> Prompt:
    heading, key = _keyed(wordings(split)["headings"], rng, 0.3)
    text = rng.choice(wordings(split)["tables"]).replace("{h}", heading)
    return _alone(text, key, "table", split, rng, style, given)


def nothing(split: str, rng: Random, style: Style, given: Any = None) -> Prompt:
    one = _alone(rng.choice(wordings(split)["nothing"]), "none", "nothing", split, rng, style, given)
    return one._replace(told=len(one.text))


def expression(split: str, rng: Random, style: Style, given: Any = None) -> Prompt:
    """A sum of two to four terms, or a call of a function, as programs and textbooks write them."""
    words = wordings(split)
    if rng.random() < 0.45:
        name, key = _keyed(words["functions"], rng, 0.3)
        slots = re.findall("[abcd]", key.partition(" ")[2]) or ["a", "b"][: rng.choice((1, 2, 2, 2))]
        comma = rng.choice((", ", ", ", ","))
        listed = comma.join("{" + slot + "}" for slot in slots)
        listed = f"[{listed}]" if rng.random() < 0.12 else listed
        text = one(words["calls"], rng).replace("{f}", name).replace("{e}", listed)
        text = text.replace("{s}", " ".join("{" + slot + "}" for slot in slots))
    else:
        written, key = _terms(rng)
        text = one(words["expressions"], rng).replace("{e}", written)
    return _alone(text, key, "expression", split, rng, style, given)


def _terms(rng: Random) -> tuple[str, str]:
    """An expression of slots, and its key."""
    count, spoken, space = rng.choice((2, 2, 2, 3, 3, 4)), rng.random() < 0.25, rng.choice((" ", " ", ""))
    signs = [rng.choice("++-") for _ in range(count - 1)]
    if other := rng.random() < 0.25:  # an expression that is no sum
        signs[rng.randrange(count - 1)] = rng.choice("*/*x%")
    names = {"+": "plus", "-": "minus", "*": "times", "/": "divided by", "x": "times", "%": "modulo"}
    text, key = "{a}", "sum a"
    for slot, sign in zip("bcd", signs, strict=False):
        text += f" {names[sign]} {{{slot}}}" if spoken else f"{space}{sign}{space}{{{slot}}}"
        key += f" {'-' if sign == '-' else ''}{slot}"
    return text, "none" if other else key


def chat(split: str, rng: Random, style: Style, given: Any = None) -> Prompt:
    text, key = _keyed(wordings(split)["chat"], rng)
    begun = rng.choice(wordings(split).get("chat_answers", {}).get(key, [""]))
    return _alone(CHAT.format(text) + begun, key, "chat", split, rng, style, given)


def text_prompt(split: str, rng: Random, style: Style, given: Any = None) -> Prompt:
    """A passage of ordinary text; no number in it is computed."""
    text = passage(split, rng, 300)
    atoms = tuple(
        Atom(found.start(), found.end(), UNKNOWN, ROLES.index("none"), True) for found in re.finditer("[0-9]+", text)
    )
    return Prompt(text + ("" if text[-1:].isspace() else " "), atoms, 0, None, "text", len(text))


ALONE: dict[str, Callable[..., Prompt]] = {
    "plain": plain,
    "table": table,
    "expression": expression,
    "nothing": nothing,
    "chat": chat,
    "text": text_prompt,
}
SHARES = {
    "people": 24,
    "three_people": 13,
    "kinds": 12,
    "changes": 8,
    "leaving": 5,
    "plain": 20,
    "expression": 8,
    "table": 7,
    "nothing": 6,
    "chat": 4,
    "text": 2,
}


def group(
    split: str,
    rng: Random,
    kind: str | None = None,
    style: Style = USUAL,
    size: int = 6,
    given: Mapping[str, str] | None = None,
) -> list[Prompt]:
    """Prompts of a split and of one kind; those of a scene begin alike. `given`: what some slots should hold."""
    kind = kind or rng.choices(list(SHARES), list(SHARES.values()))[0]
    if kind in ALONE:
        found = [ALONE[kind](split, rng, style, given) for _ in range(size)]
    else:
        found = scene(split, kind, rng, style, size, given)
    cuts = [cut(rng.choice(found), rng) for _ in range(size // 3)]
    return found + [one for one in cuts if one]


if __name__ == "__main__":
    import sys

    chosen = Random(int(sys.argv[2]))
    for made in (one for _ in range(int(sys.argv[3])) for one in group(sys.argv[1], chosen, size=2)):
        marked = [
            (made.text[atom.start : atom.end], atom.joins, ROLES[atom.role] if atom.role >= 0 else "")
            for atom in made.atoms
        ]
        print(repr(made.text), ASKED[made.asked], made.answer, marked, made.kind, made.text[made.told :], sep="\n   ")
