"""What the model computes: a graph of allowed operations, the same whatever the tokens are. It keeps its numbers in
parameters and buffers, where they are counted, and nowhere else."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from lab.smallest_adder import contract
from lab.smallest_adder.graph.counting import RESHAPING, Constants, chosen_places, count, literals, readable
from lab.smallest_adder.graph.describing import Unregistered
from lab.smallest_adder.graph.flow import flow_of
from lab.smallest_adder.graph.graph import IDS, Graph, Node, Value, numbers_in, read_graph
from lab.smallest_adder.graph.operations import LOOK_UPS, Kind
from lab.smallest_adder.graph.program import Program, shaken_graph
from lab.smallest_adder.trial import COLLAPSED, Objection, Trial, Unusable

SOME = 32
"""The number of problems in which single values are looked at, and of numbers that are replaced in a tensor."""
BASES = 8
"""The number of sequences in which all digits are exchanged, one by one."""
TINY = 0.05
"""A power below this, or a norm of such an order, is nearly a step at zero."""
OVERFLOWING = ("exp", "exp2", "expm1", "sinh", "cosh")
BOUNDS = (
    ("numbers that the attentions of a layer carry to a position", "carried", contract.CARRIED, True),
    ("numbers that the attentions of all layers carry to a position", "carried_in_all", contract.CARRIED_IN_ALL, True),
    ("activations and norms in a row after attentions", "activations", contract.ACTIVATIONS, True),
    ("operations of arithmetic before any attention", "steps_before", contract.STEPS, False),
    ("operations of arithmetic after the attentions of a layer", "steps", contract.STEPS, False),
)
"""What the contract bounds around attention, the field of `Flow`, the bound, and whether it grows with parameters."""


def graph(trial: Trial) -> str:
    """Stops models that are not a fixed computation of allowed operations: Python, other libraries than torch, random
    numbers.

    The pass over a practice prompt is recorded once, and this graph is the model from here on. In a transformer,
    tokens are data and never decide what is computed, so nothing is lost.
    """
    start = trial.prompts.shape[1]
    whole = _traced(trial, start + trial.length - 1)
    rows = whole.shape(whole.logits).numel() // trial.vocabulary
    shorter = [] if rows > 1 else [_traced(trial, start + more) for more in range(trial.length - 1)]
    trial.graphs = [*shorter, whole]
    if len({tuple(node.name for node in graph.nodes) for graph in trial.graphs}) > 1:
        raise Unusable("what is computed depends on the number of tokens")
    if not _alike(trial.graphs):
        raise Unusable("other numbers are in the code for another number of tokens")
    layouts = _layouts(whole)
    if any(_layouts(graph) != layouts for graph in shorter):
        raise Unusable("another part of the parameters is read for another number of tokens")
    for tensor in whole.tensors:
        ours, others = whole.storages[tensor.storage], [graph.storages.get(tensor.storage) for graph in shorter]
        if tensor.counts and not all(theirs is not None and torch.equal(ours, theirs) for theirs in others):
            raise Unusable(f"{tensor.name} has other numbers for another number of tokens")
    trial.flows = [flow_of(graph) for graph in trial.graphs]
    trial.programs = trial.changed()
    gives = "all positions" if rows > 1 else "the last position"
    return f"{len(whole.nodes):,} operations, the logits of {gives}"


def _alike(graphs: Sequence[Graph]) -> bool:
    """Whether graphs of more and more tokens differ in sizes alone. A size, or the number of a value, is a whole number
    that grows by even steps, or by steps that grow evenly."""
    for nodes in zip(*(graph.nodes for graph in graphs), strict=True):
        for given in zip(*(tree_leaves((node.args, node.kwargs)) for node in nodes), strict=False):
            is_size = {*map(type, given)} in ({int}, {Value})
            if len({*given}) > 1 and not (is_size and len({*np.diff(given, 2).tolist()}) <= 1):
                return False
    return True


def _layouts(graph: Graph) -> list[tuple[int, list[int], list[int]]]:
    return sorted((one.offset, [*one.shape], [*one.stride]) for one in readable(graph.tensors))


def _traced(trial: Trial, tokens: int) -> Graph:
    prompt = trial.prompts[0].tolist()
    ids = (prompt + prompt[::-1] + prompt)[:tokens]
    try:
        return read_graph(*trial.child.trace(ids, trial.vocabulary), tokens)
    except ValueError as error:
        raise Unusable(str(error)) from error


def numbers_in_the_code(trial: Trial) -> str:
    """Stops weights that are not parameters: in text, attributes, globals, sizes, seeds, masks, settings of operations.

    A model needs a few numbers in its code, such as an epsilon or a period. Ramps, waves and masks are described by few
    numbers.
    """
    whole, places = trial.graphs[-1], 0
    found: set[float] = set()
    try:
        for program in trial.programs:
            constants = Constants(program, trial.vocabulary, trial.prompts)
            found |= literals(constants)
            places = max(places, chosen_places(constants))
    except Unregistered as error:
        raise Objection(f"{error}: register it, or compute it from a few numbers") from error
    finally:
        trial.counts = count(whole.tensors, whole.storages, len(found) + places)
    if len(found) + places > contract.LITERALS:
        raise Objection(
            f"{len(found)} different numbers in the code of a pass, and {places} places that it picks; at most "
            f"{contract.LITERALS} together"
        )
    numbers = f"{len(found)} numbers in the code: {', '.join(f'{number:g}' for number in sorted(found))}"
    return (numbers if found else "none") + (f"; {places} places picked" if places else "")


def arithmetic(trial: Trial) -> str:
    """Stops integer arithmetic, comparisons and rounding of what is learned or attended to.

    Tokens and positions may be compared, to mask or look something up. What depends on weights must be smooth or
    piecewise linear. An integer parameter may only be an index into learned values: as an index into a table in the
    code, it would stand for several numbers. If a token stands for two digits, numbers that are computed from tokens
    may only be such indices too, because the number of such a token could encode the sum of its digits. The code must
    not combine or compare the digits of several tokens. Masks may be registered as numbers if these are 0 and 1 and are
    only compared. A buffer of consecutive positions is no parameter here, because the code could make it.
    """
    for program in trial.programs:
        _check_pairs(trial, program)
    if trial.writing and any(len(places) > 1 for places in trial.writing.places):
        for graph in trial.graphs:
            _check_codes(graph)
    for graph, flow, program in zip(trial.graphs, trial.flows, trial.programs, strict=True):
        counted = {value for value in graph.leaves if graph.leaves[value].counts and not _is_positions(graph, value)}
        marks, masks = _masks(graph, counted)
        real = graph.downstream(counted | flow.weights.keys(), by_shape=False) - masks
        places = {value for value in counted if _is_whole(graph.blank[value].dtype)}
        indices = _reshaped(graph, places)
        looking_up = graph.downstream(places, by_shape=False)
        for node in graph.nodes:
            given = real.intersection(node.inputs)
            is_mask = masks.issuperset(node.results)
            if given and not is_mask and (node.kind is Kind.STEP or _compares(node, graph, real, program.fixed)):
                names = [graph.leaves[value].name for value in counted if given & _reshaped(graph, {value})]
                hint = "; if {} is a mask, register it as bool; if it holds positions, use torch.arange"
                hint = hint.format(names[0]) if names else ""
                raise Objection(f"{node.name} of what is learned or attended to: {Kind.STEP.value}{hint}")
            computed = given - marks - graph.leaves.keys() - indices
            if not is_mask and any(_is_whole(graph.blank[value].dtype) for value in computed):
                raise Objection(
                    f"{node.name} of whole numbers that were made of what is learned or attended to; whole numbers in "
                    "a parameter or buffer may only be sliced and used as indices"
                )
            if node.name in LOOK_UPS and node.inputs[0] not in real and looking_up.intersection(node.inputs):
                raise Objection(f"{node.name}: a whole number that is a parameter looks up what is not learned")
        if graph.logits in real and _is_whole(graph.blank[graph.logits].dtype):
            raise Objection("the logits are whole numbers: they have been rounded")
        _check_finite(program, trial.prompts[-SOME:], real)
    return "nothing learned or attended to is rounded or compared"


def _is_positions(graph: Graph, value: int) -> bool:
    """Whether a tensor from outside is a buffer of consecutive whole numbers that begin with 0, 1 or 2."""
    tensor = graph.leaves[value]
    numbers = tensor.of(graph.storages[tensor.storage]).flatten()
    is_ramp = any(bool((numbers - first == torch.arange(len(numbers))).all()) for first in range(3))
    return tensor.kind == "buffer" and numbers.dtype != torch.bool and is_ramp


def _reshaped(graph: Graph, values: set[int]) -> set[int]:
    """The values and all that is made of them by slicing and reshaping alone."""
    found = set(values)
    for node in graph.nodes:
        types = {graph.blank[value].dtype for value in (*node.inputs, *node.results)}
        if node.name in (*RESHAPING, "slice", "select") and found.issuperset(node.inputs) and len(types) == 1:
            found.update(node.results)
    return found


def _check_finite(program: Program, prompts: np.ndarray, real: set[int]) -> None:
    """Raises Objection if what is learned or attended to is finite, and what is made of it is not: a division by zero
    tells zero from all other numbers. Only exponentials may overflow."""
    nodes = [node for node in program.nodes if real.intersection(node.inputs) and node.name not in OVERFLOWING]
    ids_BT = np.concatenate([prompts, prompts[:, ::-1], prompts], axis=1)[:, : program.graph.tokens]
    moving = {value for node in program.nodes for value in node.results}
    _, seen = program.run(ids_BT, {value for node in nodes for value in (*node.inputs, *node.results)} & moving)
    finite = {value: bool(found.isfinite().all()) for value, found in {**program.fixed, **seen}.items()}
    for node in nodes:
        known = (
            all(finite.get(value, True) for value in node.inputs)
            and np.isfinite(numbers_in((node.args, node.kwargs))).all()
        )
        if known and not all(finite[value] for value in node.results):
            raise Objection(f"{node.name} makes an infinite number, or none, of what is learned or attended to")


def _masks(graph: Graph, counted: set[int]) -> tuple[set[int], set[int]]:
    """Stored tensors of zeros and ones with all that only moves them, and the masks made by comparing these."""
    leaves = {value: graph.leaves[value].of(graph.storages[graph.leaves[value].storage]) for value in counted}
    marks = {value for value, tensor in leaves.items() if ((tensor == 0) | (tensor == 1)).all()}
    masks: set[int] = set()
    for node in graph.nodes:
        known = [value in marks or value in masks for value in node.inputs]
        if known and all(known):
            is_bool = graph.is_bool(node.results[0])
            if is_bool:
                masks.update(node.results)
            elif (node.kind is Kind.MOVE or node.name == "rsub") and marks.intersection(node.inputs):
                marks.update(node.results)
    return marks, masks


def _compares(node: Node, graph: Graph, real: set[int], fixed: Mapping[int, torch.Tensor]) -> bool:
    """Whether an operation that looks smooth compares: zero to the power of x is one at zero and nothing above it, and
    so is nearly x to a tiny power; a norm of such an order counts what is not zero; the logarithm and the powers of a
    complex number jump; and a threshold may replace what is below it by any number."""
    settings = node.settings
    is_complex = any(graph.blank[value].is_complex() for value in node.inputs)
    if is_complex and node.name in ("log", "log2", "log10", "log1p", "pow", "sqrt", "rsqrt"):
        return True
    if node.name == "pow":
        base, power = (fixed.get(part) if isinstance(part, Value) else torch.tensor(part) for part in node.args[:2])
        if power is not None and bool(((power != 0) & (power.abs() < TINY)).any()):
            return True
        return node.args[0] not in real and (base is None or bool((base <= 0).any()))
    if node.name in ("linalg_vector_norm", "norm", "_cdist_forward"):
        orders = (settings.get(name) for name in ("ord", "p"))
        return any(order is not None and abs(order) < TINY for order in orders)
    return node.name == "threshold" and any(settings.get(name) != 0 for name in ("threshold", "value"))


def _check_pairs(trial: Trial, program: Program) -> None:
    """Raises Objection if an entry of a value that nothing learned has touched depends on the digits of two tokens.

    Digits are exchanged one by one. Signs stay, so that positions may be counted from them.
    """
    graph, drawn = program.graph, np.random.default_rng(trial.seed)
    learned = graph.downstream(graph.own, by_shape=False)
    made = {value: node.name for node in program.nodes for value in node.results if value not in learned}
    signs = np.flatnonzero((trial.prompts == trial.prompts[0]).all(0))
    digits = np.unique(np.delete(trial.prompts, signs, 1))
    places = np.setdiff1d(np.arange(graph.tokens), signs)
    for _ in range(BASES if len(digits) else 0):
        same_T = drawn.choice(digits, graph.tokens)
        same_T[signs] = trial.prompts[0, signs]
        changes = dict.fromkeys(made, torch.zeros(()))
        for some in np.array_split(places, math.ceil(len(places) / program.at_once)):
            same_BT = np.repeat(same_T[None], len(some), 0)
            changed_BT = same_BT.copy()
            changed_BT[np.arange(len(some)), some] = drawn.choice(digits, len(some))
            before, after = (program.run(ids_BT, made)[1] for ids_BT in (same_BT, changed_BT))
            for value in made:
                one_B, other_B = before[value], after[value]
                changes[value] = changes[value] + ((one_B != other_B) & ~(one_B.isnan() & other_B.isnan())).sum(0)
        for value, name in made.items():
            if (changes[value] > 1).any():
                raise Objection(f"{name} combines the digits of two tokens before they meet a parameter")


def _is_one_hot(node: Node, numbers: set[int]) -> bool:
    return node.name == "scatter" and numbers.isdisjoint(value for value in node.inputs if value != node.args[2])


def _check_codes(graph: Graph) -> None:
    """Raises Objection if numbers that are computed from tokens are combined with learned values other than as an index
    into a parameter.

    Comparing tokens with numbers is allowed: to tell digits from signs, or to make one-hot vectors that are multiplied
    with what is learned.
    """
    learned, tables, numbers, marks = graph.downstream(graph.own), graph.own, {IDS}, set()
    for node in graph.nodes:
        given, inputs = numbers.intersection(node.inputs), node.inputs
        is_bool = graph.is_bool(node.results[0])
        if learned.intersection(node.results):
            sizes = [sum(graph.shape(value).numel() for value in values) for values in (node.results, inputs)]
            # a table that repeats its numbers, such as sliding windows of them, has been computed from few
            if node.kind is Kind.MOVE and tables.issuperset(inputs) and sizes[0] <= sizes[1]:
                tables.update(node.results)
            looks_up = node.name in LOOK_UPS and inputs[0] in tables
            if given - (set(inputs[1:]) if looks_up else set()):
                raise Objection(f"{node.name}: the number of a token that stands for two digits looks up no parameter")
        elif marks.intersection(inputs) and not given:
            (marks if node.kind is Kind.MOVE or is_bool else numbers).update(node.results)
        elif given:
            told_apart = node.name in ("eq", "ne") or all(graph.blank[value].numel() == 1 for value in inputs[1:])
            compared = node.kind is Kind.STEP and is_bool and given <= {IDS} and told_apart
            (marks if compared or _is_one_hot(node, numbers) else numbers).update(node.results)


def _is_whole(dtype: torch.dtype) -> bool:
    return not (dtype.is_floating_point or dtype.is_complex)


def size_around_attention(trial: Trial) -> str:
    """Stops weights that are built by many operations before attention, and an adder that is unrolled after it.

    The contract bounds how much attention may carry to a position, depending on the parameters, and how much may be
    computed after it: a layer's norms and its feed-forward fit.
    """
    grown = [(name, most) for _, name, most, grows in BOUNDS if grows]
    missing = max(getattr(flow, name) - most for name, most in grown for flow in trial.flows)
    more = _needed(trial, missing * contract.PARAMETERS_FOR_ONE_MORE) // contract.PARAMETERS_FOR_ONE_MORE
    for what, name, bound, grows in BOUNDS:
        found, most = max(getattr(flow, name) for flow in trial.flows), bound + more * grows
        if found > most:
            raise Objection(f"{found} {what}; at most {most}")
    flow = trial.flows[-1]
    carried, in_a_row = (
        f"attention carries {flow.carried} numbers",
        f"{flow.activations} activations and norms in a row",
    )
    return f"{carried}; {in_a_row}, {flow.steps} operations"


def _needed(trial: Trial, most: int) -> int:
    """About how many of the counted numbers matter; the count stops at `most`. Noise in place of a number that matters
    changes logits, and noise in place of its whole tensor makes some answer wrong."""
    graph, noise, found = trial.graphs[-1], _replaced(trial, 0), 0
    for storage in sorted(graph.counted):
        if found < most and trial.accuracy(trial.changed(storages={**graph.storages, storage: noise[storage]})) < 1:
            size = noise[storage].numel() * (1 + noise[storage].is_complex())
            found += round(size * _share_that_matters(trial, storage, noise[storage]))
    return found


def _share_that_matters(trial: Trial, storage: int, noise: torch.Tensor) -> float:
    """The share of a storage's numbers, of SOME drawn at random, that change logits if noise takes their place."""
    graph, drawn = trial.graphs[-1], np.random.default_rng(trial.seed).permutation(len(noise))[:SOME]
    ids_BT = trial.sequence(range(8))
    before, changes = trial.programs[-1].run(ids_BT)[0], 0
    for place in drawn.tolist():
        whole = graph.storages[storage].clone()
        whole[place] = noise[place]
        after = trial.program(graph, storages={**graph.storages, storage: whole}).run(ids_BT)[0]
        changes += not torch.allclose(before, after, rtol=1e-3, atol=1e-6, equal_nan=True)
    return changes / max(1, len(drawn))


def parameters_matter(trial: Trial) -> str:
    """Stops models that do not need their weights: with zeros or noise instead, hardly any answer may be right.

    An honest model cannot add without its weights.
    """
    worst = 0.0
    for seed in (None, 0, 1, 2, 3):
        share = trial.accuracy(trial.changed(storages=_replaced(trial, seed)))
        worst = max(worst, share)
        if share > COLLAPSED:
            raise Objection(f"{share:.0%} is right with {'zeros' if seed is None else 'noise'} for parameters")
    return f"with zeros or noise for parameters at most {worst:.0%} is right"


def _replaced(trial: Trial, seed: int | None) -> dict[int, torch.Tensor]:
    graph = trial.graphs[-1]
    generator = torch.Generator().manual_seed(seed or 0)
    found = dict(graph.storages)
    for storage in graph.counted:
        whole = found[storage]
        if whole.is_floating_point():
            noise = torch.randn(whole.shape, generator=generator)
        else:
            noise = torch.randint(0, 10, whole.shape, generator=generator)
        found[storage] = torch.zeros_like(whole) if seed is None else noise.to(whole.dtype)
    return found


def precision(trial: Trial) -> str:
    """Stops numbers that hold several numbers each, and rounding by adding a large number: both depend on the last
    bits.

    The same graph is computed in double precision instead of single, or the other way around, with its parameters
    converted too. Then it is computed with numbers in its code that are wrong in their fifth digit. An honest model is
    right in both cases.
    """
    if trial.reading is None:
        return "no right answer to look at"
    share = trial.accuracy(trial.changed(other_precision=True))
    if share < contract.RIGHT_IN_OTHER_PRECISION:
        raise Objection(f"{share:.0%} is right when the same graph is computed in the other precision")
    shaken = trial.accuracy([trial.program(shaken_graph(graph)) for graph in trial.graphs])
    if shaken < contract.RIGHT_IN_OTHER_PRECISION:
        raise Objection(f"{shaken:.0%} is right when the code's numbers are wrong in their fifth digit")
    return f"{share:.0%} of what is right stays right in the other precision"
