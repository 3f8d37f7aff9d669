"""Sentences about arrays made by hand."""

import numpy as np

from lab.probing.measured import Measured
from lab.probing.report.verdicts import verdicts


def exact(name: str, axes: dict[str, list], value: np.ndarray) -> Measured:
    """An array whose intervals have no width."""
    return Measured(name, axes, value, value, value, np.full(value.shape, 10))


def test_the_head_that_brings_the_carry_about_is_named_even_if_another_works_against_it_more():
    effects = np.array([[0.2, -0.6], [0.0, 0.4]])
    axes = {"place": ["everywhere"], "carry": ["from 0 to 1"], "layer": [0, 1], "head": [0, 1]}
    (sentence,) = verdicts("patching", [exact("effect", axes, effects[None, None])])
    assert sentence.startswith("L1H1 brings the carry about: 40 % (40-40)")


def test_edges_that_are_too_few_at_every_share_are_said_to_be_too_few():
    axes = {"ablation": ["mean", "resample"], "share of edges": [0.015, 0.1]}
    curve = exact("faithfulness", axes, np.array([[0.2, 0.8], [0.5, 0.95]]))
    assert verdicts("edges", [curve]) == [
        "Under mean ablation, no circuit does at least 90 % of what the model does.",
        "Under resample ablation, 10.0 % of the edges do at least 90 % of what the model does.",
    ]
