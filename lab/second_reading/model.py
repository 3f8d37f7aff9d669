"""A pretrained model that talks as before, reads the question, and computes the number that is asked for.

    text     The tram had 512 riders, the bus 46. Together they had 558 riders
    first    ............................................... . ....... .......   the untouched model writes
    reader                                                  ^ a sum of 512 and 46: nothing else is asked
    second                                                    ===              the adapted model writes

1. The untouched model reads everything. It alone decides whether a number may come next: when its probability of a
   digit, or of the space before one, is large enough.
2. The reader then decides whether this number is computed, what is asked, and of which numbers before. If nothing is
   computed, the untouched model goes on.
3. The adapted model rereads the digits of these numbers and writes the answer, which the untouched model then reads.

So every text has the untouched model's logits, and a text in which nothing is computed is written by it alone.
"""

import re
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

import torch

from lab.errors import TaskError
from lab.second_reading.adapted import SIGNS, SecondReading, grid, one_token
from lab.second_reading.arithmetic import Signed, computed
from lab.second_reading.reader import ASKED, ROLES, Reader, Vocabulary, lower_states

LONGEST_READ = 6
"""The reader reads no more than the first digits of a run of digits, because it was trained on runs this long."""
LONGEST_COMPUTED = 5000
"""The second reading needs memory that grows with the square of the number of digits."""


class Question(NamedTuple):
    asked: str
    numbers: tuple[str, ...]
    """The numbers that it is about, as they are written."""
    signs: tuple[int, ...]


class Computed(NamedTuple):
    question: Question
    answer: Signed
    start: int
    """The number of tokens before the answer."""


class Continuation(NamedTuple):
    tokens: list[int]
    """What was written after the prompt."""
    computed: list[Computed]
    chances: list[float]
    """Each time that the reader was asked, the probability that something is asked for."""


def never(written: Continuation) -> bool:
    return False


class TwoReadings:
    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        readers: Sequence[Reader],
        second: SecondReading,
        threshold: float = 0.5,
        likely: float = 0.5,
    ) -> None:
        """
        Args:
            model: the untouched model.
            tokenizer: its tokenizer.
            readers: readers, whose probabilities are averaged.
            second: the second reading of the same model.
            threshold: the least probability that something is asked with which a number is computed.
            likely: the least probability of a number, according to the untouched model, with which the reader is asked.
        """
        self.model, self.tokenizer, self.second = model, tokenizer, second
        self.readers = [reader.eval() for reader in readers]
        self.threshold, self.likely, self.space = threshold, likely, one_token(tokenizer, " ")
        self.vocabulary = Vocabulary(tokenizer)
        self.digits = [one_token(tokenizer, digit) for digit in "0123456789"]
        self._digit_of = {token: str(digit) for digit, token in enumerate(self.digits)}

    def logits(self, ids_BT: torch.Tensor) -> torch.Tensor:
        """The logits of the next tokens of texts: those of the untouched model."""
        return self.model(ids_BT).logits

    def generate(self, text: str, new_tokens: int = 64) -> str:
        """The most likely continuation of a text, with numbers computed where they are asked for."""
        prompt = self.tokenizer.encode(text, add_special_tokens=False)
        found = self.continued(prompt, new_tokens, {self.tokenizer.eos_token_id}).tokens
        return self.tokenizer.decode(found, skip_special_tokens=True)

    @torch.no_grad()
    def continued(
        self, prompt: list[int], new_tokens: int, ends: Set[int], stop: Callable[[Continuation], bool] = never
    ) -> Continuation:
        """The most likely continuation of a text, with numbers computed where they are asked for.

        Args:
            prompt: the tokens of the text.
            new_tokens: at most how many tokens are written, those of computed numbers among them.
            ends: tokens that end a text.
            stop: tells whether what was written is enough.
        """
        written, unread, cache = Continuation([], [], []), prompt, None
        while len(written.tokens) < new_tokens:
            out = self.model(torch.tensor([unread]), past_key_values=cache, use_cache=True, logits_to_keep=1)
            cache, unread = out.past_key_values, self._next(prompt, written, out.logits[0, -1])
            written.tokens.extend(unread[: new_tokens - len(written.tokens)])
            if unread[-1] in ends or stop(written):
                break
        return written

    def _next(self, prompt: list[int], written: Continuation, logits_V: torch.Tensor) -> list[int]:
        """The next token of the untouched model, or a computed number, which is added to `written`."""
        if self._after_computed(written):  # no digit may follow one
            logits_V[self.digits] = -torch.inf
        elif asked := self._asked(prompt + written.tokens, logits_V, written.chances):
            before, question = asked
            answer = self.answer(question)
            signs = answer.written(any("," in number for number in question.numbers))
            written.computed.append(Computed(question, answer, len(written.tokens) + len(before)))
            return before + [one_token(self.tokenizer, sign) for sign in signs]
        return [int(logits_V.argmax())]

    def _after_computed(self, written: Continuation) -> bool:
        """Whether what was written ends in a computed number, perhaps followed by a point or comma."""
        if not written.computed:
            return False
        return bool(re.fullmatch("-?[0-9,.]+", self.tokenizer.decode(written.tokens[written.computed[-1].start :])))

    def _asked(
        self, tokens: list[int], logits_V: torch.Tensor, chances: list[float]
    ) -> tuple[list[int], Question] | None:
        """If a number is to be computed after a text: what stands before its first digit, and the question. Adds to
        `chances` the probability of a question, if a number may come."""
        before = None if tokens[-1] in self._digit_of else self._number_next(logits_V, tokens)
        if before is None:
            return None
        chance, question = self.read(tokens + before)
        chances.append(chance)
        return (before, question) if question and chance >= self.threshold else None

    def _number_next(self, logits_V: torch.Tensor, tokens: list[int]) -> list[int] | None:
        """What stands before the first digit of a number that may come next: a space or nothing; None if none may."""
        chances_V = logits_V.float().softmax(-1)
        digit, space = float(chances_V[self.digits].sum()), float(chances_V[self.space])
        if tokens[-1] == self.space or digit >= space:
            return [] if digit >= self.likely else None
        return [self.space] if digit + space >= self.likely else None

    @torch.no_grad()
    def read(self, tokens: list[int]) -> tuple[float, Question | None]:
        """The probability that something is asked at the end of a text, and what it would be; None if it is not asked
        of two numbers or more."""
        runs, shown = self._runs(tokens)
        if not runs:
            return 0.0, None
        at, words = self.vocabulary.seen(shown)
        where = {token: index for index, token in enumerate(at)}
        runs = [(first, last, where[token]) for first, last, token in runs]
        states_1TLD = lower_states(self.model, torch.tensor([shown]))[:, at]
        words_1T, length_1 = torch.tensor([words]), torch.tensor([len(words)])
        found = [reader(states_1TLD, words_1T, length_1) for reader in self.readers]
        asked_C = torch.stack([one.asked_BC[0].softmax(-1) for one in found]).mean(0)
        roles_TC = torch.stack([one.roles_BTC[0].softmax(-1) for one in found]).mean(0)
        joins_T = torch.stack([one.joins_BT[0].sigmoid() for one in found]).mean(0)
        numbers, asked = self._numbers(tokens, runs, joins_T), ASKED[1 + int(asked_C[1:].argmax())]
        roles = decided(asked, roles_TC[[last for _, last in numbers]])
        chosen = [(text, role) for (text, _), role in zip(numbers, roles, strict=True) if role != "none"]
        signs = tuple(1 if role == "plus" else -1 for _, role in chosen)
        question = Question(asked, tuple(text for text, _ in chosen), signs) if len(chosen) > 1 else None
        return float(1 - asked_C[0]), question

    def _runs(self, tokens: list[int]) -> tuple[list[tuple[int, int, int]], list[int]]:
        """The runs of digits, each as its first token, its last token, and its last token among those that are shown
        to the reader; and the latter."""
        runs: list[tuple[int, int, int]] = []
        shown: list[int] = []
        for at, token in enumerate(tokens):
            if token not in self._digit_of:
                shown.append(token)
            elif at and tokens[at - 1] in self._digit_of:
                first, _, _ = runs.pop()
                if at - first < LONGEST_READ:
                    shown.append(token)
                runs.append((first, at, len(shown) - 1))
            else:
                shown.append(token)
                runs.append((at, at, len(shown) - 1))
        return runs, shown

    def _numbers(
        self, tokens: list[int], runs: list[tuple[int, int, int]], joins_T: torch.Tensor
    ) -> list[tuple[str, int]]:
        """Each number as it is written, and the token at whose end the reader says what its role is."""
        numbers: list[tuple[str, int]] = []
        end = -1
        for first, last, shown in runs:
            text = "".join(self._digit_of[token] for token in tokens[first : last + 1])
            between = self.tokenizer.decode(tokens[end:first]) if end >= 0 and first - end == 1 else ""
            if between in (",", ".") and joins_T[shown] > 0.5 and "." not in numbers[-1][0]:
                text = numbers.pop()[0] + between + text
            numbers.append((text, shown))
            end = last + 1
        return numbers

    def answer(self, question: Question) -> Signed:
        """The answer to a question. Raises TaskError if a number is too long."""
        numbers = [Signed.read(text, sign) for text, sign in zip(question.numbers, question.signs, strict=True)]
        if (longest := max(len(number.digits) for number in numbers)) > LONGEST_COMPUTED:
            raise TaskError(f"a number of {longest:,} digits: this model computes with up to {LONGEST_COMPUTED:,}")
        return computed(question.asked, numbers, self.write)

    @torch.no_grad()
    def write(self, operation: str, first: str, second: str) -> str:
        """What the second reading writes; of a comparison, only the highest place."""
        found = self.second(grid([(operation, first, second)])).logits_NPV[0].argmax(-1)
        signs = "".join(SIGNS[int(sign)] for sign in found.flip(0))
        return signs[0] if operation == "compare" else re.sub("[^0-9]", "0", signs)


def decided(asked: str, roles_AC: torch.Tensor) -> list[str]:
    """The most likely roles of A numbers that make sense: something is asked of at least two numbers, a distance of
    exactly two, and at least one number of a sum is added.

    Args:
        asked: one of ASKED, not "none".
        roles_AC: the probabilities of ROLES.
    """
    none, plus = ROLES.index("none"), ROLES.index("plus")
    roles_A, likeliest = roles_AC.argmax(-1), (1 - roles_AC[:, none]).argsort(descending=True)[:2]
    if asked == "distance":
        roles_A = torch.full_like(roles_A, none)
    for number in likeliest:
        if roles_A[number] == none and (asked == "distance" or (roles_A != none).sum() < 2):
            roles_A[number] = 1 + roles_AC[number, 1:].argmax()
    chosen = (roles_A != none).nonzero()[:, 0]
    if asked == "sum" and len(chosen) and not (roles_A == plus).any():
        roles_A[chosen[roles_AC[chosen, plus].argmax()]] = plus
    return [ROLES[role] for role in roles_A.tolist()]
