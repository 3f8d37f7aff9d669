"""How large a model is: by the challenge's rule, as others count, and how many numbers it has in its code.

The rule: distinct storage elements of all parameters, trainable and frozen, and of non-boolean buffers. The
public verifier counts, for each `data_ptr`, only the first tensor seen; a small view that is registered first fools it.

A number in the code is a weight like any other. Numbers with the same first five digits count once. Three kinds do not
count: familiar numbers (0, 1, 2, usual powers of ten, the square root of a width), sizes that follow from those of the
parameters, and indices of tokens in operations on tokens. A tensor that the model uses without registering it counts as
the numbers that describe it (graph/describing.py). So does a constant: a tensor that the code computes and that does
not depend on the tokens; or it counts as the pieces that it is made of, if these are fewer. Numbers that operations
make out of others, such as the sum of two ones, count if they are many. Digits beyond the fifth cannot hide
information, because the numbers are also shaken (graph/program.py).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import torch

from lab.smallest_adder import contract
from lab.smallest_adder.graph.describing import Unregistered, described, near
from lab.smallest_adder.graph.flow import MOST_EXTRA_KEYS
from lab.smallest_adder.graph.graph import IDS, Graph, Node, Tensor, numbers_in, real_parts
from lab.smallest_adder.graph.operations import LOOK_UPS, Kind
from lab.smallest_adder.graph.program import LOUDEST, Program
from lab.smallest_adder.verdict import Counts

MEETINGS = 4
"""How many operations may combine learned values with numbers in the code before they meet a token; each further one
counts as a number."""
SCALINGS = 4
"""How many operations may make a number out of others, beside one for each parameter; each further one counts as a
number."""
FEW = 8
"""Arithmetic with constants of at most this many numbers makes numbers, not tables."""
PROPORTIONAL = 1e-3
"""How far a value may be from a multiple of another, relative to its largest number, and still count as one."""
FAMILIAR = {
    *(0.5, math.pi, math.pi / 2, 2 * math.pi, math.log(10_000), torch.finfo(torch.float32).eps),
    *(math.sqrt(2 / math.pi), 0.044715, 1.702),  # of GELU
}
INFINITE = {torch.finfo(dtype).max for dtype in (torch.bfloat16, torch.float32, torch.float64)}
POWERS_OF_TEN = {*range(-12, 5), 6, 9}
"""Exponents of the powers of ten that are usual: epsilons, bases of RoPE, masks."""
TRACE = 1e-4
"""How much a value may depend on the tokens and still count as a constant, relative to its largest number."""
SMALL = 64
"""Whole numbers up to this only select some of the tokens; larger ones are sizes, or weights."""
PLACING = (
    *("select", "slice", "roll", "constant_pad_nd", "narrow", "index_select"),
    *("select_scatter", "slice_scatter", "diagonal", "diagonal_scatter", "tril", "triu", "unfold"),
)
SPLITTING = ("unbind", "split", "split_with_sizes", "chunk")
SPREADING = ("expand", "expand_as", "repeat")
"""Operations that make as many copies as the code says; the sum of copies is a multiple."""
RESHAPING = (
    *("view", "reshape", "expand", "expand_as", "unsqueeze", "squeeze", "alias", "detach", "clone", "_to_copy"),
    *("transpose", "permute", "t", "movedim"),
)
"""Operations that add no piece to a constant: they change its shape, its type or the order of its dimensions."""


def count(tensors: Sequence[Tensor], storages: Mapping[int, torch.Tensor], literals: int) -> Counts:
    """The size of a model by every rule; `literals`: how many numbers its code has."""
    rule = [tensor for tensor in tensors if tensor.counts]
    parameters = [tensor for tensor in rule if tensor.kind == "parameter"]
    numbers = distinct(readable(tensors), storages)
    first_seen = {(tensor.storage, tensor.offset): tensor for tensor in reversed(rule)}
    return Counts(
        sum(numbers.values()),
        literals,
        sum(distinct((tensor for tensor in parameters if tensor.trainable), storages).values()),
        sum(distinct(parameters, storages).values()),
        sum(math.prod(tensor.shape) for tensor in first_seen.values()),
        sum(8 * storages[at].element_size() * n // (1 + storages[at].is_complex()) for at, n in numbers.items()),
    )


def readable(tensors: Sequence[Tensor]) -> list[Tensor]:
    """What the rule counts, and whatever else a pass reads from the same storages, such as the rest of a tensor of
    which only a part is registered."""
    counted = {tensor.storage for tensor in tensors if tensor.counts}
    return [tensor for tensor in tensors if tensor.counts or tensor.storage in counted]


def distinct(tensors: Iterable[Tensor], storages: Mapping[int, torch.Tensor]) -> dict[int, int]:
    """How many numbers of each storage the tensors cover; a complex number is two."""
    covered: dict[int, torch.Tensor] = {}
    for tensor in tensors:
        whole = covered.setdefault(tensor.storage, torch.zeros(len(storages[tensor.storage]), dtype=torch.bool))
        once = [size if stride else min(size, 1) for size, stride in zip(tensor.shape, tensor.stride, strict=True)]
        tensor._replace(shape=once).of(whole).fill_(True)
    return {place: int(whole.sum()) * (1 + storages[place].is_complex()) for place, whole in covered.items()}


class Constants:
    """What a graph computes that is the same whatever the tokens are."""

    def __init__(self, program: Program, vocabulary: int, prompts: np.ndarray) -> None:
        """`prompts`: some prompts. The program is run for the first of them, and for their tokens in random order, but
        tokens that are the same in all prompts stay, because what the code makes of these alone is a constant."""
        self.vocabulary, self.program, self.prompts = vocabulary, program, prompts
        self.graph = graph = program.graph
        ids_BT = np.random.default_rng(0).choice(np.unique(prompts), (17, graph.tokens))
        ids_BT[0] = np.resize(prompts[:1], graph.tokens)
        is_same_T = (prompts == prompts[0]).all(0)[: graph.tokens]
        ids_BT[:, : len(is_same_T)][:, is_same_T] = ids_BT[0, : len(is_same_T)][is_same_T]
        _, seen = program.run(ids_BT, watch=graph.downstream({IDS}) - {IDS})
        self.seen = program.fixed | {IDS: torch.from_numpy(ids_BT)} | seen
        """All values; those that depend on the tokens as rows, one for each sequence."""
        self.learned = graph.downstream(graph.own)
        same = {value: found[0] for value, found in seen.items() if _same_in_all(found)}
        self.steady = program.fixed | same
        """All values that hardly depend on the tokens."""
        self.fixed = program.fixed | {value: found for value, found in same.items() if value not in self.learned}
        self.moving = graph.downstream({IDS}) - self.steady.keys()
        """The values that depend on the tokens, and not in form alone, as `ids == ids` does."""

    @cached_property
    def put_together(self) -> tuple[set[float], int]:
        """What the constants count that are combined with learned values or with values that depend on the tokens: the
        set of the numbers that describe them, and the number of pieces.

        Each constant counts as the numbers that describe it, or as the pieces that it is made of, whichever are fewer.
        Equal constants count once.
        """
        numbers: set[float] = set()
        pieces: dict[int, int] = {}
        for value in self._met():
            parts, told = self._pieces(value), self._told(value)
            if told is None or sum(parts.values()) < len(told):
                pieces |= parts
            else:
                numbers |= told
        return numbers, sum(pieces.values())

    @cached_property
    def many_tables(self) -> int:
        """How many numbers describe the constant tensors from outside, without the two largest: the same few digits in
        many tensors are many numbers."""
        outside = [self.fixed[value] for value in self.graph.leaves.keys() - self.graph.own]
        tables = {_content(tensor): tensor for tensor in outside if tensor.numel() > 1}
        return sum(sorted(len(described(tensor)) for tensor in tables.values())[:-2])

    @cached_property
    def widths(self) -> set[int]:
        """The sizes of parameters."""
        return {1, *(size for value in self.graph.own for size in _paid(self.graph.leaves[value]))}

    @cached_property
    def sizes(self) -> set[int]:
        """Sizes that need not be told: of the sequence, of the vocabulary, and of parameters."""
        return {self.graph.tokens, self.vocabulary} | self.widths

    @cached_property
    def in_prompts(self) -> set[float]:
        """The numbers that the prompt hands to the code: whole numbers that the code computes from tokens, and tokens
        with which it computes, if they are the same in all prompts. If no id is left out, only tokens that elsewhere
        stand for digits are numbers."""
        graph, length = self.graph, min(self.prompts.shape[1], self.graph.tokens)
        made, computes, numbers = [], False, {IDS}
        for node in graph.nodes:
            is_bool = graph.is_bool(node.results[0])
            if not numbers.intersection(node.inputs) or is_bool or node.kind is Kind.MAKE or node.name in LOOK_UPS:
                continue
            computes |= node.kind is not Kind.MOVE
            if self.learned.isdisjoint(node.results):
                numbers.update(node.results)
                made += [value for value in node.results if graph.shape(value)[-1:] == (graph.tokens,)]
        ids_BT = np.pad(self.prompts[:64, :length], ((0, 0), (0, graph.tokens - length)))
        _, seen = self.program.run(ids_BT, made)
        parts = [seen[value][..., :length].double().reshape(len(ids_BT), -1) for value in made]
        told = {float(n) for part in parts if _same_in_all(part) for n in part[0].unique()}
        if computes:
            ids, is_same = np.unique(self.prompts), (self.prompts == self.prompts[0]).all(0)
            digits = {*self.prompts[:, ~is_same].flat}
            told |= {float(n) for n in self.prompts[0, is_same] if n >= len(ids) or n in digits}
        return told

    @cached_property
    def products(self) -> set[int]:
        """The products of two parts of sizes."""
        return _products(self.sizes)

    def _met(self) -> list[int]:
        """Constants that the code computes and that are inputs of an operation whose result is no constant."""
        known = self.fixed.keys() - self.learned - self.graph.leaves.keys()
        met = [value for node in self.graph.nodes for value in node.inputs if known.isdisjoint(node.results)]
        made = [value for value in dict.fromkeys(met) if value in known and self.fixed[value].numel() > 1]
        return list({_content(self.fixed[value]): value for value in made}.values())

    def _told(self, value: int) -> set[float] | None:
        """The numbers that describe a constant, less those that need not be told; None if it takes too many."""
        try:
            numbers = described(self.fixed[value])
        except Unregistered:
            return None
        return {abs(n) for n in numbers if not _familiar(n, self.widths)} - self.products - {self.graph.tokens - 1}

    def _pieces(self, value: int) -> dict[int, int]:
        """For each operation that helps to make a constant out of pieces: how many pieces it puts together, by the
        number of its first result."""
        needed, found = {value}, {}
        for node in reversed(self.graph.nodes):
            if needed.intersection(node.results):
                needed.update(node.inputs)
                if node.kind is Kind.STEP or (node.kind is Kind.MOVE and node.name not in RESHAPING):
                    found[node.results[0]] = max(1, len(node.inputs))
        return found


def _content(tensor: torch.Tensor, digits: int = 7) -> tuple[torch.Size, float, bytes]:
    """Equal for tensors of equal shape and numbers, up to so many digits of the largest one that is no mask's."""
    numbers = real_parts(tensor).double().nan_to_num()
    usual = torch.where(numbers.abs() <= LOUDEST, numbers.abs(), 0)
    size = float(f"{usual.max():.{digits - 1}e}") if numbers.numel() else 0.0
    rounded = (numbers / (size or 1) * 10**digits).round() + 0.0  # no -0.0, whose bytes are others than those of 0.0
    return tensor.shape, size, rounded.numpy().tobytes()


def _same_in_all(found_B: torch.Tensor) -> bool:
    """Whether the rows are equal, or so nearly that they differ by a trace of the tokens alone."""
    if not (found_B.is_floating_point() or found_B.is_complex()):
        return bool((found_B == found_B[:1]).all())
    parts_B = real_parts(found_B).double()
    finite = parts_B.isfinite()
    if not (finite == finite[:1]).all():
        return False
    size = torch.where(finite, parts_B.abs(), 0).max() if parts_B.numel() else 0
    return bool((torch.where(finite, parts_B - parts_B[:1], 0).abs() <= TRACE * size).all())


def literals(constants: Constants) -> set[float]:
    """The numbers in a graph's code that count: those that a reader could not know without being told.

    Raises Unregistered for a tensor from outside that takes too many numbers to describe.
    """
    graph, fixed, sizes, products = constants.graph, constants.fixed, constants.sizes, constants.products
    own = graph.own
    moving, learned = constants.moving, constants.moving | constants.learned
    of_widths = _products(constants.widths)
    of_tokens = products | set(range(graph.tokens + MOST_EXTRA_KEYS + 1))
    told = {float(size) for value in own for size in graph.shape(value) if size not in products}
    for value in graph.leaves:
        if value not in own:
            told.update(described(fixed[value]))
    for node in graph.nodes:
        is_moving, is_learned = (bool(found.intersection(node.results)) for found in (moving, learned))
        known = of_tokens if is_moving and node.name not in SPREADING else _parts(sizes) if is_learned else products
        told.update(_written(node, sizes, is_learned))
        told.update(float(size) for value in node.results for size in graph.shape(value) if size not in known)
        if node.kind is Kind.MAKE or node.name in PLACING:
            beside = is_moving and _beside_tokens(graph, node)
            least, known = (0, of_widths) if beside else (SMALL if node.name in PLACING else 0, known)
            told.update(place for _, place in _placed(node) if abs(place) > least and abs(place) not in known)
        if is_learned:
            made = [value for value in node.inputs if value not in learned and value not in graph.leaves]
            told.update(float(fixed[value]) for value in made if fixed[value].numel() == 1)
    told |= {number for number in constants.put_together[0] if -number not in told}  # a sign makes no other number
    told |= constants.in_prompts
    return {float(f"{number:.5g}") for number in told if not _familiar(number, constants.widths)}


def chosen_places(constants: Constants) -> int:
    """What the code chooses without writing a number: the indices that it picks from tensors that do not depend on the
    tokens, the parts that it takes out of other tensors (`_parts_taken`), the pieces that constants are made of, the
    times that a learned value is used again (`_used_again`), and the numbers that operations make (`_numbers_made`).
    Each counts like a number in the code.

    The first index, the whole length, and parts that are taken one after the other do not count as picked. For tensors
    that are computed from parameters, one choice is free for every four numbers of the parameters.
    """
    graph, moving, learned = constants.graph, constants.moving, constants.learned
    taken: dict[tuple, list[float]] = {}
    for node in graph.nodes:
        if node.name in PLACING and not moving.intersection(node.results) and not _is_pair(graph, node):
            for name, place in _placed(node):
                key = (bool(learned.intersection(node.results)), name, *node.inputs)
                taken.setdefault(key, []).append(place)
    chosen = {True: 0, False: 0}
    for (is_learned, _, value, *_), places in taken.items():
        sizes = set(graph.shape(value))
        step = places[1] - places[0] if len(places) > 1 else places[0]
        in_order = places[0] in {0, step} and places == [places[0] + place * step for place in range(len(places))]
        in_order &= step > 0 or len(places) == 1
        known = {0, 1, *_parts(sizes)} if len(places) > 1 else {0, graph.tokens, *sizes}
        chosen[is_learned] += 0 if in_order and step in known else len(places)
    chosen[False] += constants.put_together[1] + constants.many_tables
    parameters = sum(distinct(readable(graph.tensors), graph.storages).values())
    chosen[True] += _parts_taken(constants) + _used_again(constants) + _numbers_made(constants, SCALINGS + parameters)
    return max(0, chosen[True] - parameters // contract.PARAMETERS_FOR_ONE_MORE) + chosen[False]


def _beside_tokens(graph: Graph, node: Node) -> bool:
    """Whether an operation picks along another dimension than that of the tokens, which is the first one as long."""
    if node.name not in PLACING or "dim" not in node.settings:
        return False
    shape = graph.shape(node.inputs[0])
    along = [dim for dim, size in enumerate(shape) if 0 <= size - graph.tokens <= MOST_EXTRA_KEYS]
    return node.settings["dim"] % len(shape) not in along[:1]


def _parts_taken(constants: Constants) -> int:
    """How many parts operations take out of tensors that depend on the tokens, and, by splitting, out of learned ones.

    The first and the last entry are free, and so are parts of parameters, and parts of tensors with at most two numbers
    for each token, as in rotary halves.
    """
    graph, taken = constants.graph, 0
    used = {graph.logits, *(value for node in graph.nodes for value in node.inputs)}
    own = graph.own
    for node in graph.nodes:
        if node.name in RESHAPING and own.issuperset(node.inputs):
            own.update(node.results)
        is_moving = bool(constants.moving.intersection(node.results))
        if node.name in SPLITTING and (is_moving or constants.learned.intersection(node.results)):
            parts = len(used.intersection(node.results[1:]))
        elif node.name in PLACING and is_moving:
            parts = not _is_first(node) and any(place not in (0, -1) for _, place in _placed(node))
            parts |= node.settings.get("step", 1) != 1
        else:
            continue
        if node.inputs[0] not in own and not _is_pair(graph, node):
            taken += parts
    return taken


def _is_first(node: Node) -> bool:
    """Whether a slice is the first entry."""
    return node.name == "slice" and not node.settings.get("start") and node.settings.get("end") == 1


def _is_pair(graph: Graph, node: Node) -> bool:
    """Whether an operation takes one of two numbers of each token."""
    shape = graph.shape(node.inputs[0])
    dim = node.settings.get("dim", 0 if node.name in SPLITTING else None)
    is_one_of_two = isinstance(dim, int) and shape[dim] == 2
    return is_one_of_two and max(shape) >= graph.tokens and math.prod(shape) <= 2 * max(shape)


def _used_again(constants: Constants) -> int:
    """The sum of three counts: concatenations of a value with an equal one, flips of learned values, and, beyond the
    first MEETINGS, operations that combine a learned value with a number in the code before it meets a token, or
    another value with a second number in a row."""
    again, met = 0, 0
    scaled: set[int] = set()
    for node in constants.graph.nodes:
        steady = constants.steady.keys() >= {*node.inputs} and bool(constants.learned.intersection(node.inputs))
        again += steady and node.name == "flip"
        if node.name in ("cat", "stack"):
            different = {_content(constants.steady.get(one, constants.seen[one]), 3) for one in node.inputs}
            again += len(node.inputs) - len(different)
        numbers = node.kind is Kind.SUM and any(abs(n) not in (0, 1) for n in _written(node, constants.sizes, True))
        is_scaled = bool(scaled.intersection(node.inputs))
        met += numbers and (steady or is_scaled)
        if numbers or (is_scaled and node.name in RESHAPING):
            scaled.update(node.results)
    return again + max(0, met - MEETINGS)


def _numbers_made(constants: Constants, free: int) -> int:
    """How many operations beyond `free` make a number out of others, as in `one + one`, where `one` is a parameter
    divided by itself: arithmetic with constants of a few numbers, and operations whose result is a multiple of an
    earlier value. Sums of copies and means over padding are such multiples."""
    nodes = constants.graph.nodes
    if sum(node.kind in (Kind.SUM, Kind.BEND) for node in nodes) <= free:
        return 0
    made = 0
    directions: dict[int, list[tuple[torch.Tensor, set[float]]]] = {}
    for node in nodes:
        constants.program.tick()
        for value in node.results:
            tensor = constants.steady.get(value, constants.seen[value])
            is_few = value in constants.steady and tensor.numel() <= FEW
            is_new, is_multiple = _direction(tensor, directions)
            is_arithmetic = node.kind in (Kind.SUM, Kind.BEND) and tensor.is_floating_point()
            made += is_arithmetic and is_new and (is_few or is_multiple)
    return max(0, made - free)


def _direction(tensor: torch.Tensor, known: dict[int, list[tuple[torch.Tensor, set[float]]]]) -> tuple[bool, bool]:
    """Whether a tensor's numbers are new, and whether they are a multiple of earlier ones.

    `known`: by length, earlier tensors, divided by their largest number, with the largest numbers that were seen. This
    one is added.
    """
    numbers = real_parts(tensor).double().nan_to_num(0, 0, 0).flatten()
    if not numbers.any():
        return False, False
    numbers = numbers[:1] if bool((numbers - numbers[0]).abs().max() <= PROPORTIONAL * numbers.abs().max()) else numbers
    largest = numbers[numbers.abs().argmax()]
    size, numbers = float(f"{float(largest.abs()):.4g}"), numbers / largest
    for earlier, sizes in known.setdefault(len(numbers), []):
        if bool((earlier - numbers).abs().max() <= PROPORTIONAL):
            is_new = size not in sizes
            sizes.add(size)
            return is_new, True
    known[len(numbers)].append((numbers, {size}))
    return True, False


def _paid(tensor: Tensor) -> list[int]:
    """The sizes of a parameter. Empty if it repeats a number (stride 0) or has no numbers, because then its sizes are
    larger than the numbers that are counted for it."""
    spread = [size for size, stride in zip(tensor.shape, tensor.stride, strict=True) if size > 1]
    packed = all(stride for size, stride in zip(tensor.shape, tensor.stride, strict=True) if size > 1)
    return spread if packed and math.prod(tensor.shape) else []


def _written(node: Node, sizes: set[int], learned: bool) -> Iterable[float]:
    """The numbers among an operation's arguments with which it computes."""
    for name, given in node.settings.items():
        if not node.places(name):
            yield from (float(n) for n in numbers_in(given) if learned or n not in sizes)


def _placed(node: Node) -> Iterator[tuple[str, float]]:
    """The whole numbers among an operation's arguments that are sizes or places, with the argument's name."""
    for name, given in node.settings.items():
        if node.places(name) and name not in ("dim", "dimension", "step"):
            least = 2 if name == "diagonal" else 0  # the diagonals beside the main one are in every causal mask
            yield from ((name, float(n)) for n in numbers_in(given) if least <= abs(n) < 1 << 40)


def _familiar(number: float, widths: set[int]) -> bool:
    """Whether a number is common knowledge, or a root of a part of the parameters' sizes `widths`."""
    if not math.isfinite(number) or abs(number) in {0, 1, 2, *INFINITE}:
        return True
    size = abs(number)
    power = round(math.log10(size))
    if (power in POWERS_OF_TEN and near(size, 10.0**power)) or any(near(size, known) for known in FAMILIAR):
        return True
    powers = (-4, -2) if number.is_integer() else (-4, -2, 2, 4)
    return any(near(size**power, part) for power in powers for part in _parts(widths))


def _products(sizes: set[int]) -> set[int]:
    return {one * other for one in _parts(sizes) for other in _parts(sizes)}


def _parts(sizes: set[int]) -> set[int]:
    return {part for size in sizes for part in range(1, min(size, 512) + 1) if size % part == 0} | sizes
