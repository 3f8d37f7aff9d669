"""Adders that were trained, whose circuits were verified by intervention (`verified`).

Nodes and edges are what `verified.nodes` and `verified.wires` found with pairs that the benchmark does not draw; a test
finds the nodes again. A trained model cannot be turned: all seeds are the same model.
"""



NODES: dict[str, list[str]] = {}
EDGES: dict[str, list[tuple[str, str]]] = {}
