"""Judges a Python file by the challenge's published rules, and by nothing else.

Three confined processes run the file one after the other: the first writes prompts, the second is the model in the
growing loop, and the third reads the answers. So decode hears nothing but the tokens. Structure is tested on practice
problems, which are drawn apart from those that count.
"""

import random
import secrets
import time
from typing import Any

from lab.adders.challenge.child import Limits, Misbehaved, ask
from lab.adders.challenge.source import CATEGORIES
from lab.adders.problems import Pair, drawn, problems
from lab.adders.spec import LARGEST_VOCABULARY, LONGEST_ANSWER, LONGEST_PROMPT
from lab.adders.verdict import Verdict, plain

PRACTICE = 24


def judge(source: str, seed: int | None = None, number: int = 10_000, limits: Limits | None = None) -> Verdict:
    """The verdict on the text of a Python adder.

    Args:
        source: the text.
        seed: the seed of the random problems; drawn if not given. No confined process gets it.
        number: how many random problems, besides the ten edge cases.
        limits: what the file may use.

    Raises TaskError if this system cannot confine untrusted code.
    """
    seed = secrets.randbits(63) if seed is None else seed
    began = time.monotonic()
    trial, pairs, objections = Trial(source, limits or Limits()), problems(seed, number), []
    try:
        trial.run(pairs)
    except Misbehaved as error:
        objections.append(plain(error))
    category = trial.category if trial.category in CATEGORIES else "unstated"
    return Verdict(
        "python", trial.right, len(pairs), seed, _whole(trial.parameters), None, None, category, _whole(trial.seeds),
        objections, time.monotonic() - began,
    )  # fmt: skip


class Trial:
    """One file on its way through the three processes. Nothing that comes out of them is trusted to be more than
    JSON."""

    def __init__(self, source: str, limits: Limits) -> None:
        self.source, self.limits, self.seconds = source, limits, 0.0
        self.practice = drawn(random.SystemRandom(), PRACTICE)  # type: ignore[arg-type]
        self.category: Any = None
        self.seeds: Any = None
        self.parameters: Any = None
        self.right = 0

    def run(self, pairs: list[Pair]) -> None:
        """Applies all rules. Raises Misbehaved."""
        found = self.ask("encode", pairs=[*self.practice, *pairs])
        self.category, self.seeds = found.get("category"), found.get("seeds")
        vocabulary: Any = found.get("VOCAB_SIZE")
        length: Any = found.get("MAX_OUTPUT_LEN")
        for name, size, most in (
            ("VOCAB_SIZE", vocabulary, LARGEST_VOCABULARY), ("MAX_OUTPUT_LEN", length, LONGEST_ANSWER),
        ):  # fmt: skip
            if type(size) is not int or not 1 <= size <= most:
                raise Misbehaved(f"{name} is {plain(size, 40)}; should be an int from 1 to {most}")
        if found.get("reaches"):
            raise Misbehaved(f"decode reaches outside itself: {plain(found['reaches'], 200)}")
        prompts = alike_twice(found.get("rounds"), len(self.practice) + len(pairs), "encode differs")
        for pair, prompt in zip([*self.practice, *pairs], prompts, strict=True):
            check_tokens(prompt, 1, LONGEST_PROMPT, vocabulary, f"encode{pair}")
        practised, scored = prompts[:PRACTICE], prompts[PRACTICE:]
        found = self.ask("model", practice=practised, prompts=scored, length=length)
        self.parameters = found.get("parameters")
        if found.get("objection"):
            raise Misbehaved(found["objection"])
        outputs = listed(found.get("outputs"), len(pairs))
        for output in outputs:
            check_tokens(output, length, length, LARGEST_VOCABULARY, "the model", least=-1)
        whole = [place for place, output in enumerate(outputs) if min(output) >= 0]
        found = self.ask("decode", outputs=[outputs[place] for place in whole])
        answers = alike_twice(found.get("rounds"), len(whole), "decode reads the same tokens differently")
        sums = [sum(pairs[place]) for place in whole]
        self.right = sum(type(answer) is int and answer == right for answer, right in zip(answers, sums, strict=True))

    def ask(self, question: str, **given: Any) -> dict[str, Any]:
        found, seconds = ask(question, self.source, given, self.limits, self.limits.seconds - self.seconds)
        self.seconds += seconds
        if not isinstance(found, dict):
            raise Misbehaved("sent no answer")
        return found


def listed(sent: Any, count: int) -> list[Any]:
    if type(sent) is not list or len(sent) != count:
        raise Misbehaved(f"sent no list of {count} answers")
    return sent


def alike_twice(rounds: Any, count: int, otherwise: str) -> list[Any]:
    """The first of two rounds of answers, if the second is the same. Raises Misbehaved."""
    first, second = (listed(part, count) for part in listed(rounds, 2))
    if first != second:
        raise Misbehaved(f"{otherwise} when it is called again")
    return first


def check_tokens(tokens: Any, least_many: int, most: int, vocabulary: int, of: str, least: int = 0) -> None:
    """Raises Misbehaved unless these are so many ids of tokens."""
    if type(tokens) is not list or any(type(token) is not int for token in tokens):
        raise Misbehaved(f"{of} gives no list of ints")
    if not least_many <= len(tokens) <= most:
        raise Misbehaved(f"{of} has {len(tokens)} tokens; should have {least_many} to {most}")
    if min(tokens) < least or max(tokens) >= vocabulary:
        raise Misbehaved(f"{of} has tokens outside 0 to {vocabulary - 1}")


def _whole(sent: Any) -> int | None:
    return sent if type(sent) is int and 0 <= sent < 1 << 40 else None
