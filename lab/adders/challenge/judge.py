"""Judges a Python file by the challenge's published rules, and by nothing else.

Three confined processes run the file one after the other: the first writes prompts, the second is the model in the
growing loop, which the lab owns, and the third reads the answers. So decode cannot hear from encode. Structure is
tested on practice problems, which are drawn apart from those that count.
"""

import random
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.adders.challenge.child import Child, Clock, Limits, Misbehaved, integers
from lab.adders.challenge.source import CATEGORIES
from lab.adders.loop import generate
from lab.adders.problems import Pair, drawn, problems
from lab.adders.spec import LARGEST_VOCABULARY, LONGEST_ANSWER, LONGEST_PROMPT
from lab.adders.verdict import Verdict, plain

PRACTICE = 24
AT_ONCE = 500
SINGLE = 40
"""How many of the problems are also computed one at a time, to see that a batch does not change them."""
TOLERANCE = 1e-3
"""How far logits may differ that should be the same, as a share of their size."""


class Objection(Exception):  # noqa: N818
    """A rule is broken; the text says how."""


def judge(source: str, seed: int | None = None, number: int = 10_000, limits: Limits | None = None) -> Verdict:
    """The verdict on the text of a Python adder.

    Args:
        source: the text.
        seed: the seed of the random problems; drawn if not given. No confined process gets it.
        number: how many random problems, besides the ten edge cases.
        limits: what the file may use.

    Raises TaskError if this system cannot confine untrusted code.
    """
    seed, limits = secrets.randbits(63) if seed is None else seed, limits or Limits()
    trial = Trial(source, problems(seed, number), limits)
    objections = []
    try:
        trial.run()
    except (Objection, Misbehaved) as error:
        objections.append(plain(error))
    seconds = limits.seconds - trial.clock.left
    facts = trial.facts
    return Verdict(
        "python", trial.right, len(trial.pairs), seed, trial.parameters, None, None, facts["category"], facts["seeds"],
        objections, seconds,
    )  # fmt: skip


class Trial:
    def __init__(self, source: str, pairs: list[Pair], limits: Limits) -> None:
        self.source, self.pairs, self.limits, self.clock = source, pairs, limits, Clock(limits.seconds)
        self.own = random.SystemRandom()
        """The source of practice problems and of all choices; it has nothing to do with the seed."""
        self.practice = drawn(self.own, PRACTICE)  # type: ignore[arg-type]
        self.facts: dict[str, Any] = {"category": "unstated", "seeds": None}
        self.right, self.parameters = 0, None
        self.vocabulary = self.length = 0

    def run(self) -> None:
        """Applies all rules. Raises Objection or Misbehaved."""
        with self.child() as child:
            self.interface(child.facts)
            practised, prompts = self.prompts(child, self.practice), self.prompts(child, self.pairs)
        with self.child() as child:
            outputs = self.model(child, practised, prompts)
        with self.child() as child:
            answers = self.answers(child, outputs)
        self.right = sum(
            type(found) is int and found == a + b for (a, b), found in zip(self.pairs, answers, strict=True)
        )

    def child(self) -> Child:
        return Child(self.source, self.limits, self.clock)

    def interface(self, facts: Any) -> None:
        try:
            sizes = {name: facts[name] for name in ("VOCAB_SIZE", "MAX_OUTPUT_LEN")}
            seeds = facts["seeds"] if type(facts["seeds"]) is int else None
            category = facts["category"] if facts["category"] in CATEGORIES else "unstated"
            self.facts = {"category": category, "seeds": seeds}
            reaches = [plain(word, 40) for word in facts["reaches"]]
        except (TypeError, KeyError):
            raise Misbehaved("sent no facts") from None
        for (name, size), most in zip(sizes.items(), (LARGEST_VOCABULARY, LONGEST_ANSWER), strict=True):
            if type(size) is not int or not 1 <= size <= most:
                raise Objection(f"{name} is {plain(size, 40)}; should be an int from 1 to {most}")
        self.vocabulary, self.length = sizes["VOCAB_SIZE"], sizes["MAX_OUTPUT_LEN"]
        if reaches:
            raise Objection(f"decode reaches outside itself: {', '.join(reaches)}")

    def prompts(self, child: Child, pairs: Sequence[Pair]) -> list[list[int]]:
        """The prompt of each pair. Raises Objection if one is too long or out of range, or differs the second time."""
        found = _rows(child.ask("encode", pairs=list(pairs)), len(pairs))
        order = self.own.sample(range(len(pairs)), len(pairs))
        again = _rows(child.ask("encode", pairs=[pairs[place] for place in order]), len(pairs))
        for place, second in zip(order, again, strict=True):
            prompt = integers(found[place])
            if not 1 <= len(prompt) <= LONGEST_PROMPT:
                raise Objection(f"encode{pairs[place]} has {len(prompt)} tokens; should have 1 to {LONGEST_PROMPT}")
            if min(prompt) < 0 or max(prompt) >= self.vocabulary:
                raise Objection(f"encode{pairs[place]} has tokens outside 0 to {self.vocabulary - 1}")
            if prompt != second:
                raise Objection(f"encode{pairs[place]} differs when it is called again")
        return found

    def model(self, child: Child, practised: list[list[int]], prompts: list[list[int]]) -> list[list[int]]:
        """What the model writes after the prompts, if it attends and is causal."""
        child.ask("build")
        self.parameters = _number(child.ask("parameters"))
        looks = child.ask("one", ids=practised[0])
        everywhere, attends = (isinstance(looks, dict) and looks.get(key) is True for key in ("everywhere", "attends"))
        if not attends:
            raise Objection(
                "no self-attention: the model's pass has no softmax over the tokens, nor a product of all with all"
            )
        batch = self.takes_batches(child, practised)
        outputs = self.written(child, practised, batch)
        rows = [prompt + output[:-1] for prompt, output in zip(practised, outputs, strict=True)]
        self.attention(child, rows)
        if everywhere:
            self.causality(child, rows)
        outputs = self.written(child, prompts, batch)
        if batch:
            some = self.own.sample(range(len(prompts)), min(SINGLE, len(prompts)))
            alone = self.written(child, [prompts[place] for place in some], False)
            if alone != [outputs[place] for place in some]:
                outputs = self.written(child, prompts, False)
        self.parameters = max(self.parameters, _number(child.ask("parameters")))
        return outputs

    def logits(self, child: Child, rows: Sequence[Sequence[int]], batch: bool, everywhere: bool = False) -> np.ndarray:
        shape = (len(rows), len(rows[0]), None) if everywhere else (len(rows), None)
        ids = [list(map(int, row)) for row in rows]
        found = child.numbers("logits", shape, ids=ids, batch=batch, everywhere=everywhere)
        if found.shape[-1] > LARGEST_VOCABULARY:
            raise Objection(f"the model gives {found.shape[-1]} logits a token; at most {LARGEST_VOCABULARY}")
        return found

    def takes_batches(self, child: Child, rows: Sequence[list[int]]) -> bool:
        """Whether the model computes several sequences at once as it does each alone."""
        same = [row for row in rows if len(row) == len(rows[0])]
        alone = self.logits(child, same, False)
        try:
            return alike(self.logits(child, same, True), alone)
        except Misbehaved as error:
            if child.alive:
                return False
            raise error

    def written(self, child: Child, prompts: list[list[int]], batch: bool) -> list[list[int]]:
        """What the model writes after each prompt in the growing loop."""
        outputs: list[list[int]] = [[]] * len(prompts)
        for length in sorted(set(map(len, prompts))):
            places = [place for place, prompt in enumerate(prompts) if len(prompt) == length]
            grown = generate(
                lambda ids: self.logits(child, ids.tolist(), batch),
                np.array([prompts[place] for place in places]),
                self.length,
                AT_ONCE,
            )
            for place, output in zip(places, grown.tolist(), strict=True):
                outputs[place] = output
        return outputs

    def attention(self, child: Child, rows: list[list[int]]) -> None:
        """Raises Objection if the last logits do not change with the tokens before."""
        for row in rows:
            changed = [*(self.own.choice(self.seen(rows, token)) for token in row[:-1]), row[-1]]
            if not alike(*self.logits(child, [row, changed], False)):
                return
        raise Objection("no self-attention: what the model writes does not depend on earlier tokens")

    def causality(self, child: Child, rows: list[list[int]]) -> None:
        """Raises Objection if logits change with a later token."""
        for row in rows:
            cut = self.own.randrange(1, len(row)) if len(row) > 1 else 1
            changed = [*row[:cut], *(self.own.choice(self.seen(rows, token)) for token in row[cut:])]
            before, after = self.logits(child, [row, changed], False, True)[:, :cut]
            if not alike(before, after):
                raise Objection(f"not causal: logits at the first {cut} tokens change with the tokens after them")

    @staticmethod
    def seen(rows: list[list[int]], other_than: int) -> list[int]:
        """The tokens that occur; the model need not be able to read others."""
        return [token for token in sorted(set().union(*rows)) if token != other_than and token >= 0] or [other_than]

    def answers(self, child: Child, outputs: list[list[int]]) -> list[Any]:
        """What decode reads, in two orders. Raises Objection if it differs."""
        valid = [place for place, output in enumerate(outputs) if min(output) >= 0]
        found: list[Any] = [None] * len(outputs)
        for time in range(2):
            order = self.own.sample(valid, len(valid))
            for place, answer in zip(
                order, _rows(child.ask("decode", outputs=[outputs[p] for p in order]), len(order)), strict=True
            ):
                if time and answer != found[place]:
                    raise Objection("decode reads the same tokens differently when it is called again")
                found[place] = answer
        return found


def alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether logits are the same up to rounding. Where they are not finite, they should both be not."""
    if one.shape != other.shape or (np.isfinite(one) != np.isfinite(other)).any():
        return False
    changed = np.isfinite(one) & (one != other)  # logits such as -1e9 for "never" say nothing of the size of the others
    if not changed.any():
        return True
    one, other = one[changed], other[changed]
    size = np.maximum(abs(one), abs(other)) + np.median(abs(one))
    return bool((abs(one - other) <= TOLERANCE * size + 1e-9).all())


def _number(sent: Any) -> int:
    if type(sent) is not int or not 0 <= sent < 1 << 40:
        raise Misbehaved("sent no number of parameters")
    return sent


def _rows(sent: Any, count: int) -> list:
    if type(sent) is not list or len(sent) != count:
        raise Misbehaved(f"sent no list of {count} answers")
    return sent
