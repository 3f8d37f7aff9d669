"""Where a submission keeps its numbers: in parameters and buffers, where they are counted, and nowhere else."""

import numpy as np

from lab.smallest_adder.counting import tensors_of
from lab.smallest_adder.sandbox import plain
from lab.smallest_adder.trial import COLLAPSED, Objection, Trial

NUMBER_TYPES = {"float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"}


def number_types(trial: Trial) -> str:
    """Stops numbers of types that could hold several, such as complex ones.

    Every usual number type is allowed, and reported in bits.
    """
    found = sorted({tensor.dtype for tensor in trial.tensors})
    strange = [name for name in found if name not in NUMBER_TYPES]
    if strange:
        raise Objection(f"numbers of type {', '.join(map(plain, strange))}; allowed: {', '.join(sorted(NUMBER_TYPES))}")
    return ", ".join(found) or "no parameters"


def boolean_buffers(trial: Trial) -> str:
    """Stops weights written as bits where booleans are not counted.

    A causal mask is a triangle, which holds no information.
    """
    if any(tensor.dtype == "bool" and tensor.kind == "parameter" for tensor in trial.tensors):
        raise Objection("a boolean parameter")
    strange = trial.model.ask("masks")
    if strange:
        raise Objection(
            f"{plain(strange[0])}: booleans that are no causal mask (a triangle) hold information uncounted"
        )
    return "all causal masks" if any(tensor.dtype == "bool" for tensor in trial.tensors) else "none"


def parameters_matter(trial: Trial) -> str:
    """Stops models whose weights are for show: with zeros or noise in their place nothing may be left.

    An honest model knows nothing without its weights, and everything when they are put back.
    """
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
    if abs(trial.accuracy(places) - np.mean([trial.is_right(place) for place in places])) > COLLAPSED:
        raise Objection("with its parameters put back, the model does not answer as it did")
    return f"with zeros or noise for parameters at most {worst:.0%} is right"


def hidden_tensors(trial: Trial) -> str:
    """Stops weights in attributes, closures, globals and caches, and those registered after the count.

    Looked at after the model has run, when its caches are full. What a model needs, it registers in build_model.
    """
    found = trial.model.ask("strays")
    if found:
        raise Objection(f"{plain(found[0])}, which is no parameter or buffer" + _more(found))
    if tensors_of(trial.model.ask("tensors")["tensors"]) != trial.tensors:
        raise Objection("parameters or buffers were added or exchanged after build_model, where they are counted")
    return "all tensors are parameters or buffers"


def torch_untouched(trial: Trial) -> str:
    """Stops replaced functions of torch and Python, with which the harness would deceive itself.

    An honest file uses them as they are.
    """
    for child in (trial.encoder, trial.model, trial.decoder):
        found = child.ask("tampered")
        if found:
            raise Objection(f"{plain(found[0])} was replaced" + _more(found))
    return "torch and Python are as they were"


def _more(found: list) -> str:
    return f" (and {len(found) - 1} more)" if len(found) > 1 else ""
