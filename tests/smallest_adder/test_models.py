"""Small adders: how many numbers each has, that training sees what generation sees, and one worked out by hand."""

import pytest
import torch

from lab.smallest_adder.config import AdderModelConfig, GptAdderConfig, ReducedAdderConfig, TinyAdderConfig
from lab.smallest_adder.models import ReducedAdder, build
from lab.smallest_adder.rows import ANSWERS, batch

MODELS: list[tuple[AdderModelConfig, int]] = [
    (GptAdderConfig(), 10 * 16 + 35 * 16 + 3 * 32 + 4 * 256 + 2 * 512 + 48),
    (TinyAdderConfig(), 228),
    (TinyAdderConfig(width=2, heads=1, inner=3, period=(8, 20), tied=True), 20 + 16 + 18 + 6 + 1),
    (
        TinyAdderConfig(width=3, heads=1, inner=2, values=1, period=(8, 20), tied=True, gains="last", height=0.7),
        30 + 12 + 6 + 18 + 3 + 1,
    ),
    (
        TinyAdderConfig(width=3, heads=1, inner=2, values=1, tied=True, gains="none", ties=["gate", "down"]),
        30 + 12 + 6 + 6,
    ),
    (ReducedAdderConfig(), 3 + 2 + 1 + (2 + 2 + 2) + 2),
    (ReducedAdderConfig(width=1, embedding="ramp", head="nearest"), 1 + 2 + 1 + (1 + 2) + 1),
    (ReducedAdderConfig(width=1, embedding="unit", head="nearest"), 2 + 1 + (1 + 2) + 1),
    (ReducedAdderConfig(embedding="table", attention="content", output="matrix", gates="free"), 20 + 8 + 5 + 10 + 2),
    (
        ReducedAdderConfig(
            width=3, embedding="table", attention="content", output="matrix", gates="free", hidden=3, head="free"
        ),
        30 + 12 + 10 + 21 + 30,
    ),
]


@pytest.mark.parametrize(("config", "count"), MODELS)
def test_each_architecture_has_as_many_numbers_as_it_says(config, count):
    assert sum(parameter.numel() for parameter in build(config).parameters()) == count


@pytest.mark.parametrize("config", [config for config, _ in MODELS])
def test_the_queries_of_the_answers_alone_give_what_all_queries_give(config):
    torch.manual_seed(0)
    model = build(config)
    ids_BT = torch.from_numpy(batch("train", 0, 0, 5)[0])
    whole_BTV = model(ids_BT)
    assert whole_BTV.shape == (5, 34, 10)
    torch.testing.assert_close(model(ids_BT, ANSWERS), whole_BTV[:, -ANSWERS:], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("config", [config for config, _ in MODELS])
def test_a_model_sees_nothing_of_what_follows(config):
    torch.manual_seed(0)
    model = build(config)
    ids_BT = torch.from_numpy(batch("train", 0, 0, 5)[0])
    torch.testing.assert_close(model(ids_BT[:, :24]), model(ids_BT)[:, :24])


def test_the_known_circuit_worked_out_by_hand_adds_without_a_mistake():
    """Attention 10 : 1 on this place and the one before, minus the digit written last; minus 100 from about 94 on."""
    model = ReducedAdder(1, 2, "ramp", "position", "identity", "hinges", "nearest", 12.0)
    # query of amplitude r, phase 30° * 10.3: ln 10 = 8 r (cos 9° - cos 21°), so r = 5.32, and the place above weighs
    # exp(8 r (cos 39° - cos 9°)) = 0.0001 of this one
    turn = torch.tensor(10.3 * torch.pi / 6)
    values = {
        "step": torch.tensor(1.0),
        "query_2": 5.32 * torch.stack([turn.cos(), turn.sin()]),
        "residual": torch.tensor(-1 / 22),
        # in units of 1/22: from 92 to 97 it falls by 100
        "bias_F": torch.tensor([-92.0, -97.0]) / 22,
        "down_D": torch.tensor([-20.0]),
        "scale_D": torch.tensor([2.2]),
    }
    model.load_state_dict(values)
    rows_BT, answers_BA = map(torch.from_numpy, batch("valid", 0, 0, 2000))
    right_B = (model(rows_BT, ANSWERS).argmax(-1) == answers_BA).all(-1)
    assert right_B.float().mean() == 1
