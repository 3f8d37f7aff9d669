"""Where a submission keeps its numbers: in parameters and buffers, where they are counted, and nowhere else."""

import torch

from lab.smallest_adder import contract
from lab.smallest_adder.graph.constants import chosen_places, literals
from lab.smallest_adder.graph.counting import count
from lab.smallest_adder.graph.describing import Unregistered
from lab.smallest_adder.graph.program import Program
from lab.smallest_adder.graph.shaken import shaken_graph
from lab.smallest_adder.trial import COLLAPSED, Objection, Trial


def numbers_in_the_code(trial: Trial) -> str:
    """Stops weights that are not parameters: in text, attributes, globals, sizes, seeds, masks, settings of operations.

    A model needs a few numbers in its code, such as an epsilon or a period. Ramps, waves and masks are described by few
    numbers.
    """
    whole, places = trial.graphs[-1], 0
    found: set[float] = set()
    try:
        for graph in trial.graphs:
            found |= literals(graph, trial.vocabulary)
            places = max(places, chosen_places(graph))
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
    shaken = trial.accuracy([Program(shaken_graph(graph)) for graph in trial.graphs])
    if shaken < contract.RIGHT_IN_OTHER_PRECISION:
        raise Objection(f"{shaken:.0%} is right when the code's numbers are wrong in their fifth digit")
    return f"{share:.0%} of what is right stays right in the other precision"
