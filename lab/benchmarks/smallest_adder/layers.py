"""The layers of validation: each is one function that looks at a trial and says what it found, or objects.

The first seven are the challenge's own, made exact; the others answer known ways around those (adder_notes.md has the
table). They are run in the order of LAYERS. One that another builds upon raises `Unusable`, which ends the trial.

Shapes: B sequences, T tokens, V tokens in the vocabulary.
"""

import random
from collections.abc import Callable
from functools import cached_property

import numpy as np

from lab.benchmarks.smallest_adder import codecs, source
from lab.benchmarks.smallest_adder.contract import DIGITS, LARGEST_VOCABULARY, LONGEST_OUTPUT, LONGEST_PROMPT
from lab.benchmarks.smallest_adder.counting import Counts, Tensor, count, tensors_of
from lab.benchmarks.smallest_adder.drafts import Drafts
from lab.benchmarks.smallest_adder.harness import EDGE_CASES, Pair, continues, generate, right
from lab.benchmarks.smallest_adder.sandbox import Child, Limits, Misbehaved, integers, plain

NUMBER_TYPES = {"float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"}

COLLAPSED = 0.1
"""The largest share of right answers that is left of a model whose weights, or whose attention, were taken away."""

QUALIFYING = 0.99

PLAIN = 1_000
"""Problems that are always done token by token."""


class Objection(Exception):  # noqa: N818
    """A layer rejects the submission; the text says why."""


class Unusable(Objection):
    """And nothing further can be looked at."""


class Trial:
    """One submission, the problems it is tried on, and what has come of it so far.

    Three processes hold it, one for each function, so that nothing but tokens goes from one function to another; each
    sees the problems in another order.
    """

    def __init__(self, text: str, pairs: list[Pair], seed: int, limits: Limits, plain_loop: bool = False) -> None:
        self.text = text
        self.pairs = pairs
        self.seed = seed
        self.limits = limits
        self.plain_loop = plain_loop
        self.causal = False
        self.shuffled = random.Random(seed)
        self._children: list[Child] = []
        self.vocabulary = 0
        self.length = 0
        self.prompts = np.empty((0, 0), dtype=np.int64)
        self.outputs = np.empty((0, 0), dtype=np.int64)
        self.answers: list[int | str] = []
        self.tensors: list[Tensor] = []

    @cached_property
    def encoder(self) -> Child:
        return self._start()

    @cached_property
    def model(self) -> Child:
        return self._start()

    @cached_property
    def decoder(self) -> Child:
        return self._start()

    def _start(self) -> Child:
        child = Child(self.text, self.limits)
        self._children.append(child)
        return child

    def close(self) -> None:
        for child in self._children:
            child.close()

    @property
    def counts(self) -> Counts | None:
        return count(self.tensors, self.text) if self.tensors else None

    @property
    def right(self) -> int:
        return right(self.pairs, self.answers) if self.answers else 0

    def encode(self, pairs: list[Pair]) -> list[list[int]]:
        """In an order of its own. Raises Misbehaved."""
        order = list(range(len(pairs)))
        self.shuffled.shuffle(order)
        sent = self.encoder.ask("encode", pairs=[pairs[place] for place in order])
        prompts: list[list[int]] = [[] for _ in pairs]
        for place, prompt in zip(order, _rows(sent, len(pairs)), strict=True):
            prompts[place] = [*integers(prompt)]
        return prompts

    def decode(self, outputs: list[list[int]]) -> list[int | str]:
        """In an order of its own: an int, or why there is none. Raises Misbehaved."""
        order = list(range(len(outputs)))
        self.shuffled.shuffle(order)
        sent = self.decoder.ask("decode", outputs=[outputs[place] for place in order])
        answers: list[int | str] = ["" for _ in outputs]
        for place, answer in zip(order, _rows(sent, len(outputs)), strict=True):
            answers[place] = answer if type(answer) is int else plain(answer)
        return answers

    def generate(self, problems: np.ndarray) -> np.ndarray:
        """What the greedy loop writes after the given prompts (problems, length). Raises Misbehaved."""
        return generate(self.model, self.prompts[problems], self.length, self.vocabulary)

    def accuracy(self, problems: np.ndarray) -> float:
        """Of the model as it now stands, on the given places among the problems; nan counts as wrong."""
        try:
            outputs = self.generate(problems)
        except Misbehaved as error:
            if "nan" in str(error):
                return 0.0
            raise
        answers = self.decode(outputs.tolist())
        return right([self.pairs[place] for place in problems], answers) / len(problems)

    def some(self, count: int) -> np.ndarray:
        """Places of `count` problems, drawn."""
        return np.array(self.shuffled.sample(range(len(self.pairs)), min(count, len(self.pairs))))


def _rows(sent: object, count: int) -> list:
    if type(sent) is not list or len(sent) != count:
        raise Misbehaved(f"sent no list of {count} answers")
    return sent


def text(trial: Trial) -> str:
    found = source.objections(trial.text)
    if found:
        raise Objection("; ".join(found[:3]) + ("; ..." if len(found) > 3 else ""))
    return "nothing forbidden in the source"


def interface(trial: Trial) -> str:
    exports = trial.model.exports
    for name, able in zip(("build_model", "encode", "decode"), exports["callable"], strict=True):
        if not able:
            raise Unusable(f"{name} is not a function")
    largest = (("VOCAB_SIZE", LARGEST_VOCABULARY), ("MAX_OUTPUT_LEN", LONGEST_OUTPUT))
    for (name, most), size in zip(largest, exports["sizes"], strict=True):
        if type(size) is not int or not 1 <= size <= most:
            raise Unusable(f"{name} is {size if type(size) is int else 'not an int'}; an int from 1 to {most}")
    trial.vocabulary, trial.length = exports["sizes"]
    trial.tensors = tensors_of(trial.model.ask("build")["tensors"])
    return f"VOCAB_SIZE {trial.vocabulary}, MAX_OUTPUT_LEN {trial.length}, a torch.nn.Module"


def encode_bounds(trial: Trial) -> str:
    prompts = trial.encode(trial.pairs)
    for (a, b), prompt in zip(trial.pairs, prompts, strict=True):
        if not 1 <= len(prompt) <= LONGEST_PROMPT:
            raise Unusable(f"encode({a}, {b}) has {len(prompt)} tokens; 1 to {LONGEST_PROMPT}")
        if any(not 0 <= token < trial.vocabulary for token in prompt):
            raise Unusable(f"encode({a}, {b}) has tokens outside 0 to {trial.vocabulary - 1}")
        if len(prompt) != len(prompts[0]):
            raise Unusable(f"encode({a}, {b}) has {len(prompt)} tokens, others {len(prompts[0])}: pad the numbers")
    trial.prompts = np.array(prompts, dtype=np.int64)
    return f"{trial.prompts.shape[1]} tokens for each of {len(prompts):,} problems, all below {trial.vocabulary}"


def encode_determinism(trial: Trial) -> str:
    again = trial.encode(trial.pairs)
    if again != trial.prompts.tolist():
        raise Objection("the same operands, encoded again in another order, gave other tokens")
    for name, powers in (("a", (1, 0)), ("b", (0, 1))):
        bases = trial.pairs[:100]
        others = [((a + powers[0]) % 10**DIGITS, (b + powers[1]) % 10**DIGITS) for a, b in bases]
        if trial.encode(others) == trial.encode(bases):
            raise Objection(f"the prompt does not depend on {name}")
    return "the same tokens twice, in two orders; they depend on both operands"


def encode_copies(trial: Trial) -> str:
    drawn = random.Random(trial.seed)
    bases = list(EDGE_CASES)
    for _ in range(24):
        a = drawn.randrange(10**DIGITS)
        # Sums of nines: one digit more, and a carry runs through all places above it.
        bases += [(a, 10**DIGITS - 1 - a), (a, drawn.randrange(10**DIGITS))]
    changed = codecs.neighbours(bases)
    before = np.array(trial.encode(bases))
    after = np.array(trial.encode([pair for *_, pair in changed]))
    depends = codecs.reach(before, changed, after)
    pairs = [*trial.pairs, *bases, *(pair for *_, pair in changed)]
    objection = codecs.prompt_objection(pairs, np.concatenate([trial.prompts, before, after]), depends)
    if objection:
        raise Objection(objection)
    return f"each token copies at most two digits, on {len(pairs):,} pairs"


def number_types(trial: Trial) -> str:
    found = sorted({tensor.dtype for tensor in trial.tensors})
    strange = [name for name in found if name not in NUMBER_TYPES]
    if strange:
        raise Objection(f"numbers of type {', '.join(map(plain, strange))}; allowed: {', '.join(sorted(NUMBER_TYPES))}")
    return ", ".join(found) or "no parameters"


def boolean_buffers(trial: Trial) -> str:
    if any(tensor.dtype == "bool" and tensor.kind == "parameter" for tensor in trial.tensors):
        raise Objection("a boolean parameter")
    strange = trial.model.ask("masks")
    if strange:
        raise Objection(
            f"{plain(strange[0])}: booleans that are no causal mask (a triangle) hold information uncounted"
        )
    return "all causal masks" if any(tensor.dtype == "bool" for tensor in trial.tensors) else "none"


def logits(trial: Trial) -> str:
    """What the harness relies on: logits of the right shape, the same alone, in a batch, and asked again."""
    way = trial.model.ask("probe", prompt=trial.prompts[0].tolist())
    rows_BT = trial.prompts[trial.some(8)]
    shape = (len(rows_BT), trial.vocabulary)
    together = trial.model.logits("last", rows_BT)
    if together.shape != shape:
        raise Unusable(f"logits of shape {together.shape}; {shape} was expected: (batch, VOCAB_SIZE)")
    alone = np.concatenate([trial.model.logits("last", row[None]) for row in rows_BT[::-1]])[::-1]
    if not alike(together, alone):
        raise Objection("the logits of a prompt depend on what was computed before it or beside it")
    return f"takes {plain(way)}; the same logits alone and in a batch"


def alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether rows of logits (B, V), computed in different shapes, name the same tokens and are mostly `close`.

    A step in the model may enlarge the rounding of some.
    """
    near = [close(row, also) for row, also in zip(one, other, strict=True)]
    return bool((one.argmax(-1) == other.argmax(-1)).all()) and 4 * sum(near) >= 3 * len(near)


def close(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether logits (..., V) are the same but for rounding, told by how far the ten largest lie apart.

    A model may put tokens that it never writes at -1e9: what is close on that scale could still differ in every digit.
    """
    top = -np.sort(-one, axis=-1)[..., :10]
    lowest = np.where(np.isfinite(top), top, top[..., :1])[..., -1:]
    with np.errstate(invalid="ignore"):
        tolerance = 1e-4 * np.maximum(1, top[..., :1] - lowest) + 1e-5 * np.abs(one)
        near = np.abs(one - other) <= tolerance
    return bool(((near & np.isfinite(other)) | (one == other)).all())


def causality(trial: Trial) -> str:
    """At every length that the harness asks for: what follows a position does not change its logits."""
    places = trial.some(2)
    whole_BT = np.concatenate([trial.prompts[places], trial.generate(places)], axis=1)
    other_BT = np.random.default_rng(trial.seed).integers(0, trial.vocabulary, whole_BT.shape)
    start, end = trial.prompts.shape[1], whole_BT.shape[1]
    for row_T, other_T in zip(whole_BT, other_BT, strict=True):
        # In a batch of the same shape as the one below: rounding is the same, which a model's steps could enlarge.
        first_TV = trial.model.logits("every", np.repeat(row_T[None], end - 1, axis=0))[0]
        if len(first_TV) == 1:
            return "the model gives the last position's logits alone, and nothing follows it"
        if len(first_TV) != end:
            raise Objection(f"logits for {len(first_TV)} positions came of {end} tokens")
        swapped_BT = np.stack([np.concatenate([row_T[:cut], other_T[cut:]]) for cut in range(1, end)])
        swapped_BTV = trial.model.logits("every", swapped_BT)
        for cut in range(1, end):
            if not close(first_TV[:cut], swapped_BTV[cut - 1, :cut]):
                raise Objection(f"tokens from position {cut} on change logits before it")
        for cut in range(start, end):
            shorter_TV = trial.model.logits("every", row_T[None, :cut])[0]
            if not alike(first_TV[start - 1 : cut], shorter_TV[start - 1 :]):
                raise Objection(f"the logits of {cut} tokens are others when more tokens follow")
    trial.causal = True
    return f"at all {end} positions, and at lengths {start} to {end}"


def generation(trial: Trial) -> str:
    """Every problem through the greedy loop, in an order of its own; whether answers are right is a later layer's.

    Where the model is causal, most problems take one pass over the answer that is to be expected. A model that reads
    such an answer instead of working it out does not write it in the plain loop: the first problems, done both ways,
    must come out alike.
    """
    order = trial.some(len(trial.pairs))
    plainly, rest = (order, order[:0]) if trial.plain_loop or not trial.causal else np.split(order, [PLAIN])
    trial.outputs = np.zeros((len(order), trial.length), dtype=np.int64)
    trial.outputs[plainly] = trial.generate(plainly)
    answers = trial.decode(trial.outputs[plainly].tolist())
    good = [place for place, answer in zip(plainly, answers, strict=True) if answer == sum(trial.pairs[place])]
    one_pass = np.zeros(len(order), dtype=bool)
    drafts = Drafts([trial.pairs[place] for place in good], trial.outputs[good]) if len(good) > PLAIN // 2 else None
    if drafts and drafts.complete and len(rest):
        drafted = drafts.of(trial.pairs)
        one_pass = continues(trial.model, trial.prompts, drafted)
        if (trial.outputs[plainly] != drafted[plainly])[one_pass[plainly]].any():
            raise Objection("an answer that the model does not write was confirmed by it when it saw it")
        trial.outputs[rest] = drafted[rest]
    left = rest[~one_pass[rest]]
    if len(left):
        trial.outputs[left] = trial.generate(left)
    trial.answers = trial.decode(trial.outputs.tolist())
    whole = len(plainly) + len(left)
    return f"{trial.length} tokens for each of {len(order):,} problems, {whole:,} of them token by token"


def self_attention(trial: Trial) -> str:
    whole_BT = np.concatenate([trial.prompts, trial.outputs], axis=1)[:2]
    lengths = sorted({trial.prompts.shape[1], whole_BT.shape[1] - 1} - {trial.vocabulary})
    seen = [_watch(trial, whole_BT[:, :length]) for length in lengths]
    if not all(watched["attends"] for watched in seen):
        raise Objection("no softmax over the tokens is computed: no self-attention")
    views = [view for watched in seen for view in watched["views"]]
    if views:
        raise Objection(f"reads the bits of {plain(views[0])}: one number could hide several")
    trial.model.ask("ablate", on=True)
    share = trial.accuracy(trial.some(64))
    trial.model.ask("ablate", on=False)
    if share > COLLAPSED:
        raise Objection(f"{share:.0%} is right with attention that looks everywhere alike: it does not add")
    return f"a softmax over all tokens; without it {share:.0%} is right"


def _watch(trial: Trial, ids_BT: np.ndarray) -> dict:
    seen = trial.model.ask_about("watch", ids_BT)
    if type(seen) is not dict or type(seen.get("views")) is not list:
        raise Misbehaved("sent no account of its attention")
    return seen


def parameters_matter(trial: Trial) -> str:
    places = trial.some(64)
    worst = 0.0
    for seed in (None, 0, 1, 2, 3):
        trial.model.ask("replace", seed=seed)
        share = trial.accuracy(places)
        worst = max(worst, share)
        if share > COLLAPSED:
            trial.model.ask("restore")
            raise Objection(f"{share:.0%} is right with {'zeros' if seed is None else 'noise'} for parameters")
    trial.model.ask("restore")
    if abs(trial.accuracy(places) - np.mean([_is_right(trial, place) for place in places])) > COLLAPSED:
        raise Objection("with its parameters put back, the model does not answer as it did")
    return f"with zeros or noise for parameters at most {worst:.0%} is right"


def _is_right(trial: Trial, place: int) -> bool:
    return right([trial.pairs[place]], [trial.answers[place]]) == 1


def decode_honesty(trial: Trial) -> str:
    if trial.decode(trial.outputs.tolist()) != trial.answers:
        raise Objection("the same tokens, decoded again in another order, gave other answers")
    strange = [answer for answer in trial.answers if type(answer) is str]
    if strange and trial.right + len(strange) == len(trial.pairs) and not trial.right:
        raise Objection(f"decode {strange[0]}")
    sums = {a + b for a, b in trial.pairs}
    garbage = np.random.default_rng(trial.seed).integers(0, trial.vocabulary, (200, trial.length))
    hits = [answer for answer in trial.decode(garbage.tolist()) if type(answer) is int and answer > 10**4]
    if any(answer in sums for answer in hits):
        raise Objection("random tokens decode to the sum of a problem")
    good = [place for place in range(len(trial.pairs)) if _is_right(trial, place)]
    if not good:
        return "no right answer to look at"
    outputs = trial.outputs[good]
    answers = [answer for answer in (trial.answers[place] for place in good) if type(answer) is int]
    changed = codecs.substitutions(outputs, bases=24, seed=trial.seed)
    depends: list[set[int]] = [set() for _ in range(codecs.PLACES)]
    before = codecs.places_of(answers)
    decoded = trial.decode([row for *_, row in changed])
    for (which, position, _), answer in zip(changed, decoded, strict=True):
        if type(answer) is int:
            for place in np.flatnonzero(codecs.places_of([answer])[0] != before[which]):
                depends[place].add(position)
    objection = codecs.answer_objection(outputs, answers, depends)
    if objection:
        raise Objection(objection)
    return "each decimal place is read from one generated token"


def hidden_tensors(trial: Trial) -> str:
    """Looked at after the model has run, when its caches are full."""
    found = trial.model.ask("strays")
    if found:
        raise Objection(f"{plain(found[0])}, which is no parameter or buffer" + _more(found))
    return "all tensors are parameters or buffers"


def torch_untouched(trial: Trial) -> str:
    for child in (trial.encoder, trial.model, trial.decoder):
        found = child.ask("tampered")
        if found:
            raise Objection(f"{plain(found[0])} was replaced" + _more(found))
    return "torch and Python are as they were"


def _more(found: list) -> str:
    return f" (and {len(found) - 1} more)" if len(found) > 1 else ""


def accuracy(trial: Trial) -> str:
    share = trial.right / len(trial.pairs)
    figure = f"{trial.right:,} of {len(trial.pairs):,} right ({share:.2%})"
    if share < QUALIFYING:
        wrong = next((k for k in range(len(trial.pairs)) if not _is_right(trial, k)), 0)
        (a, b), answer = trial.pairs[wrong], trial.answers[wrong]
        raise Objection(f"{figure}; at least 99% is asked; {a} + {b} became {answer}")
    return figure


LAYERS: tuple[tuple[str, Callable[[Trial], str]], ...] = (
    ("source", text),
    ("interface", interface),
    ("encode bounds", encode_bounds),
    ("encode determinism", encode_determinism),
    ("encode copies", encode_copies),
    ("number types", number_types),
    ("boolean buffers", boolean_buffers),
    ("logits", logits),
    ("causality", causality),
    ("generation", generation),
    ("self-attention", self_attention),
    ("parameters matter", parameters_matter),
    ("decode honesty", decode_honesty),
    ("hidden tensors", hidden_tensors),
    ("torch untouched", torch_untouched),
    ("accuracy", accuracy),
)
