"""A pass that is written down and read again is the model; what its graph says of it is true."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from lab.smallest_adder.config import AdderModelConfig, GptAdderConfig, ReducedAdderConfig, TinyAdderConfig
from lab.smallest_adder.graph.counting import Constants, chosen_places, literals
from lab.smallest_adder.graph.describing import Unregistered
from lab.smallest_adder.graph.flow import flow_of
from lab.smallest_adder.graph.graph import Graph, read_graph
from lab.smallest_adder.graph.program import Program, written_after
from lab.smallest_adder.models import build
from lab.smallest_adder.rows import batch
from lab.smallest_adder.trace.worker import Worker

IDS = [3, 1, 2, 0, 3, 1]
VOCABULARY = 4


Forward = Callable[[Any, torch.Tensor], torch.Tensor]


class Model(nn.Module):
    """An embedding of five numbers a token, and a forward pass that the test gives."""

    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCABULARY, 5, generator=torch.Generator().manual_seed(0)))
        self.run = forward

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.run(self, ids)


def graph_of(model: nn.Module, ids: list[int], vocabulary: int) -> Graph:
    worker = Worker()
    worker.model = model.eval()
    pieces: list[bytes] = []
    return read_graph(worker.on_trace(pieces, ids, vocabulary), pieces, len(ids))


def small(forward: Forward) -> Graph:
    return graph_of(Model(forward), IDS, VOCABULARY)


def told(graph: Graph) -> set[float]:
    return literals(Constants(Program(graph), VOCABULARY, np.array([IDS])))


def logits(model: Model, x: torch.Tensor) -> torch.Tensor:
    return x @ model.table.T


def attended(model: Model, ids: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
    x = model.table[ids]
    mask = torch.ones(len(IDS), len(IDS), dtype=torch.bool).triu(1)
    found = x @ x.mT if scores is None else scores
    return found.masked_fill(mask, -math.inf).softmax(-1) @ x


MODELS: list[AdderModelConfig] = [
    GptAdderConfig(),
    TinyAdderConfig(),
    TinyAdderConfig(width=2, heads=1, inner=3, period=(8, 20), tied=True, gains="none"),
    ReducedAdderConfig(),
    ReducedAdderConfig(width=1, embedding="ramp", head="nearest"),
    ReducedAdderConfig(embedding="table", attention="content", output="matrix", gates="free", head="free"),
]


@pytest.mark.parametrize("config", MODELS, ids=lambda config: f"{config.kind}-{config.width}")
def test_many_sequences_through_the_graph_give_what_the_model_gives(config):
    torch.manual_seed(0)
    model = build(config)
    rows_BT = batch("valid", 0, 0, 40)[0]
    graph = graph_of(model, rows_BT[0].tolist(), 10)
    with torch.no_grad():
        torch.testing.assert_close(Program(graph).logits(rows_BT), model(torch.from_numpy(rows_BT)))
    assert flow_of(graph).weights


def test_what_is_written_in_place_is_another_value_from_then_on():
    def forward(model: Model, ids: torch.Tensor) -> torch.Tensor:
        x = torch.zeros(1, len(IDS), 5)
        x[..., 1:4] += model.table[ids][..., 1:4]
        before = x.sum(-1, keepdim=True)
        x.mul_(2).add_(before)
        return logits(model, x)

    ids_BT = np.array([IDS, IDS[::-1]])
    graph, model = small(forward), Model(forward)
    with torch.no_grad():
        expected = torch.cat([model(torch.tensor(row)[None]) for row in ids_BT])
    torch.testing.assert_close(Program(graph).logits(ids_BT), expected)


def test_a_list_of_ids_is_recognised_for_what_it_is():
    graph = small(lambda model, ids: logits(model, model.table[torch.tensor([int(token) for token in ids])]))
    one, other = Program(graph).logits(np.array([IDS, IDS[::-1]]))
    torch.testing.assert_close(one, other.flip(0))


def test_what_python_reads_of_the_tokens_is_not_read_again():
    graph = small(lambda model, ids: logits(model, model.table[ids]) + float(ids.sum()))
    assert told(graph) == {float(sum(IDS))} - {10.0}


@pytest.mark.parametrize(
    ("forward", "name"),
    [
        (lambda model, ids: logits(model, torch.rand(len(IDS), 5) + model.table[ids]), "rand"),
        (lambda model, ids: logits(model, model.table.view(torch.int32)[ids].float()), "view.dtype"),
        (lambda model, ids: logits(model, torch.fft.fft(model.table[ids]).real), "_fft_r2c"),
    ],
)
def test_operations_that_are_not_listed_are_named_and_refused(forward, name):
    with pytest.raises(ValueError, match=f"{name}.*not among the operations"):
        small(forward)


def test_a_value_that_would_take_all_memory_is_refused_before_it_is_made():
    with pytest.raises(ValueError, match="a value of over"):
        small(lambda model, ids: logits(model, model.table[ids]) + 0 * torch.zeros(3000, 1).expand(-1, 3000).sum())


def test_values_that_would_together_take_all_memory_are_refused():
    def forward(model, ids):
        wide = torch.zeros(2000, 1).expand(-1, 1000) * model.table[ids].sum()
        for _ in range(16):
            wide = wide + wide
        return logits(model, model.table[ids]) + 0 * wide.sum()

    with pytest.raises(ValueError, match="numbers in all values; at most"):
        small(forward)


def test_the_greedy_loop_sees_nothing_of_what_is_to_come():
    graph = small(
        lambda model, ids: (
            nn.functional.one_hot((ids + 1) % VOCABULARY, VOCABULARY) + 0 * logits(model, model.table[ids])
        )
    )
    assert written_after([Program(graph)], np.array([[2, 0, 1]]), 4).tolist() == [[2, 3, 0, 1]]


@pytest.mark.parametrize(
    "made",
    [
        lambda: torch.arange(6.0)[:, None],
        lambda: torch.tensor([1.0, 0.0])[0],
        lambda: torch.ones(6, 6).triu(1).bool().float()[:, :1],
        lambda: torch.tensor([[math.cos(0.3 * t)] for t in range(6)]),
        lambda: torch.full((6, 6), -1e9).triu(1)[:1].mT,
        lambda: (torch.arange(6)[:, None] / 10_000.0 ** (torch.arange(5) / 5)).sin(),
    ],
)
def test_ramps_masks_and_waves_are_no_weights(made):
    assert told(small(lambda model, ids: logits(model, model.table[ids] + made()))) <= {0.3}


@pytest.mark.parametrize(
    ("made", "numbers"),
    [
        (lambda: 3.7, {3.7}),
        (lambda: torch.tensor(3.7), {3.7}),
        (lambda: 12_345.0, {12_345}),
        (lambda: torch.ones(37).sum(), {37}),
        (lambda: torch.arange(99.0)[77], {99, 77}),
        (lambda: torch.tensor([3.7, 5.1]).sum(), {3.7, 5.1, 8.8}),
    ],
)
def test_numbers_in_the_code_count_however_they_are_made(made, numbers):
    found = told(small(lambda model, ids: logits(model, model.table[ids]) * made()))
    assert {round(number, 5) for number in found} == numbers


@pytest.mark.parametrize("bools", [True, False])
def test_a_table_in_the_code_is_a_weight(bools):
    table = torch.randn(VOCABULARY, 5)
    table = (table > 0) if bools else table
    with pytest.raises(Unregistered, match="numbers to describe"):
        told(small(lambda model, ids: logits(model, model.table[ids] * table[ids])))


def test_a_softmax_over_the_tokens_is_attention_and_where_it_is_multiplied_is_a_mix():
    flow = flow_of(small(lambda model, ids: logits(model, attended(model, ids))))
    assert (len(flow.weights), len(flow.scores), len(flow.mixes)) == (1, 1, 1)
    assert flow.carried == 5


@pytest.mark.parametrize(
    "forward",
    [
        lambda model, ids: logits(model, model.table[ids]),
        lambda model, ids: logits(model, model.table[ids].softmax(-1)),
        lambda model, ids: logits(model, model.table[ids].cumsum(1)),
    ],
)
def test_without_a_softmax_over_the_tokens_there_is_no_attention(forward):
    assert not flow_of(small(forward)).weights


def test_bends_in_a_row_and_steps_after_attention_are_counted():
    def forward(model: Model, ids: torch.Tensor) -> torch.Tensor:
        x = model.table[ids].relu().relu().relu()
        x = x + attended(model, ids)
        return logits(model, x.relu().tanh() + 1)

    flow = flow_of(small(forward))
    assert flow.activations == 2
    assert flow.steps == 6  # the mix, add, relu, tanh, add, and the product with the head


def test_a_square_is_no_activation_but_any_other_power_is():
    def bends(power: int) -> int:
        return flow_of(small(lambda model, ids: logits(model, attended(model, ids) ** power))).activations

    assert (bends(2), bends(9)) == (0, 1)


def test_in_the_other_precision_a_large_number_rounds_no_more():
    large = 1.5 * 2.0**23
    graph = small(lambda model, ids: logits(model, model.table[ids] + large - large))
    plain = small(lambda model, ids: logits(model, model.table[ids]))
    ids_BT = np.array([IDS])
    assert not torch.allclose(Program(graph).logits(ids_BT), Program(plain).logits(ids_BT), atol=0.01)
    swapped = Program(graph, other_precision=True).logits(ids_BT)
    torch.testing.assert_close(swapped.float(), Program(plain).logits(ids_BT), atol=1e-5, rtol=1e-5)


def test_a_table_counts_as_its_pieces_or_as_the_numbers_that_describe_it():
    def places(made: Callable[[torch.Tensor], torch.Tensor]) -> int:
        graph = small(lambda model, ids: logits(model, model.table[ids] * made(ids)[:, None]))
        return chosen_places(Constants(Program(graph), VOCABULARY, np.array([IDS])))

    zero, one = torch.zeros, torch.ones
    assert places(lambda ids: torch.arange(6.0)) == 0
    assert places(lambda ids: torch.arange(6.0).flip(0)) == 0  # a ramp, too
    assert places(lambda ids: torch.cat([zero(1), one(1), one(1), zero(1), one(1), zero(1)])) == 0  # zeros and ones
    pieces = [3 * one(1), 5 * one(1), 7 * one(1), 3 * one(1), 9 * one(1), 4 * one(1)]
    assert places(lambda ids: torch.cat(pieces) + 0 * ids[0]) == 0  # five numbers describe it, fewer than six pieces
    assert places(lambda ids: torch.cat([(torch.arange(3.0) * rate).sin().exp() for rate in (3, 5)])) == 2


@pytest.mark.parametrize(
    ("taken", "places"),
    [
        (lambda x: [x[..., :1], x[..., 1:]], 0),  # two parts, and one is free for every four of 20 parameters
        (lambda x: x.split(1, -1), 0),
        (lambda x: (x[..., :1] + torch.arange(8)).unbind(-1)[:7], 1),  # the first entry is free, too
        (lambda x: [(x[..., :1] + ramp)[..., k] for k, ramp in enumerate(torch.arange(64).split(8))], 2),
        (lambda x: [x.unfold(-1, k + 1, 1)[..., 0, -1] for k in range(5)] * 2, 0),
        (lambda x: [x.unfold(-1, k + 1, 1)[..., 0, -1] for k in [*range(5)] * 2], 5),
        (lambda x: [half for pair in [x[..., :2]] * 9 for half in pair.unbind(-1)], 0),  # halves of pairs are free
    ],
)
def test_parts_that_are_taken_out_of_what_depends_on_the_tokens_count(taken, places):
    def forward(model: Model, ids: torch.Tensor) -> torch.Tensor:
        x = model.table[ids]
        return logits(model, x) + sum(part.sum() for part in taken(x))

    assert chosen_places(Constants(Program(small(forward)), VOCABULARY, np.array([IDS, IDS[::-1]]))) == places


def test_parts_of_parameters_do_not_count_in_whatever_shape():
    graph = small(lambda model, ids: logits(model, model.table[ids]) + sum(model.table.flatten().unbind(0)))
    assert chosen_places(Constants(Program(graph), VOCABULARY, np.array([IDS, IDS[::-1]]))) == 0


@pytest.mark.parametrize("hidden", [-1e9, -math.inf])
def test_heads_that_differ_are_no_copies_if_a_mask_hides_the_same_tokens_from_them(hidden):
    def forward(model: Model, ids: torch.Tensor) -> torch.Tensor:
        x, ahead = model.table[ids], torch.ones(len(IDS), len(IDS), dtype=torch.bool).triu(1)
        heads = [((x + shift) @ x.mT).masked_fill(ahead, hidden) for shift in model.table.flatten()]
        return logits(model, torch.stack(heads).softmax(-1).mean(0) @ x)

    assert chosen_places(Constants(Program(small(forward)), VOCABULARY, np.array([IDS, IDS[::-1]]))) == 0


def test_ids_may_be_joined_with_a_token_of_their_own():
    def forward(model: Model, ids: torch.Tensor) -> torch.Tensor:
        return logits(model, model.table[torch.cat([torch.zeros_like(ids[:, :1]), ids], 1)[:, :-1]])

    assert chosen_places(Constants(Program(small(forward)), VOCABULARY, np.array([IDS, IDS[::-1]]))) == 0


def test_what_is_the_same_whatever_the_tokens_are_is_a_constant():
    def forward(model: Model, ids: torch.Tensor) -> torch.Tensor:
        return logits(model, model.table[ids] * (torch.ones_like(ids).cumsum(-1) * 11)[..., None])

    assert told(small(forward)) == {11.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda sent: sent["nodes"][-1][3].__setitem__(0, sent["nodes"][0][3][0]), "made twice"),
        (lambda sent: sent["nodes"].reverse(), "before it is made"),
        (lambda sent: sent["nodes"][0].__setitem__(0, "aten.add.out"), "writes into a tensor"),
        (lambda sent: sent["tensors"].append(sent["tensors"][0]), "made twice"),
    ],
)
def test_a_graph_that_could_not_have_been_recorded_is_refused(change, message):
    worker = Worker()
    worker.model = Model(lambda model, ids: logits(model, attended(model, ids)))
    pieces: list[bytes] = []
    sent = worker.on_trace(pieces, IDS, VOCABULARY)
    read_graph(sent, pieces, len(IDS))
    change(sent)
    with pytest.raises(ValueError, match=message):
        read_graph(sent, pieces, len(IDS))
