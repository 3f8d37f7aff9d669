"""Adders that were trained, whose circuits were verified by intervention (`verified`).

Nodes and edges are what `verified.nodes` and `verified.wires` found with pairs that the benchmark does not draw; a test
finds the nodes again. A trained model cannot be turned: all seeds are the same model.
"""

from collections.abc import Callable
from functools import partial

from lab.probing.benchmark.known import DIGITS, Adder, Circuit
from lab.probing.bridge import open_model
from lab.probing.components import Component
from lab.probing.interventions import Site
from lab.probing.pairs import Pairs, carry_only

NODES: dict[str, list[str]] = {}
EDGES: dict[str, list[tuple[str, str]]] = {}
