"""Interventions on a model that can be computed on paper.

Two words, e0 = (1, 0) and e1 = (0, 1), one layer, one head that attends uniformly and copies what it sees, an MLP of
W = [[1, 2], [3, 4]] after a ReLU, and logits that are the stream:

    token      e0                       e1
    pre        (1, 0)                   (0, 1)
    attention  (1, 0)                   (1/2, 1/2)
    mid        (2, 0)                   (1/2, 3/2)
    MLP        (2, 6)                   (1/2 + 3, 3/2 + 6)
    post       (4, 6)                   (4, 9)
"""

from collections.abc import Sequence

import pytest
import torch
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module
from transformer_lens.model_bridge.sources.native import NativeModel

from lab.probing.addition.positions import Sums, Written
from lab.probing.bridge import Hook, Subject
from lab.probing.interventions import heads, pattern, put, read_residuals, residual, take
from tests.probing.known_adders import llama_adder, native_adder, tricase_adder

UNTOUCHED = [[4.0, 6.0], [4.0, 9.0]]
SECOND = torch.tensor([[1]])
"""The place of the second token, of shape (1, 1)."""


class TwoWords:
    pad = 0

    def write(self, a: int, b: int) -> Written:
        return Written([0, 1], [0], [0], [1], 0, 0)

    def words(self, ids: Sequence[int]) -> list[str]:
        return [f"e{token}" for token in ids]

    def digit_ids(self) -> list[int]:
        return [0, 1]


@pytest.fixture(scope="module")
def micro() -> Subject:
    config = TransformerBridgeConfig(
        d_model=2, d_head=2, n_layers=1, n_ctx=2, n_heads=1, d_mlp=2, d_vocab=2, act_fn="relu",
        architecture="TransformerLensNative", normalization_type=None, init_weights=False,
    )  # fmt: skip
    model = NativeModel(config).eval()
    weights = {name: torch.zeros_like(weight) for name, weight in model.state_dict().items()}
    same = ["tok_embed", "layers.0.attn.v", "layers.0.attn.o", "layers.0.mlp.fc_in", "head"]
    weights |= {f"{name}.weight": torch.eye(2) for name in same}
    weights["layers.0.mlp.fc_out.weight"] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    model.load_state_dict(weights)
    bridge = build_bridge_from_module(model, architecture="TransformerLensNative", tl_config=config, tokenizer=None)
    return Subject("micro", bridge, TwoWords())


@pytest.fixture(scope="module")
def row(micro: Subject) -> Sums:
    return micro.sums([(0, 0)])


@torch.inference_mode()
def stream_after(micro: Subject, row: Sums, hooks: list[Hook]) -> list[list[float]]:
    return micro.logits(row, hooks)[0].tolist()


def write_second(*values: float):
    return lambda stream: put(stream, SECOND, torch.tensor([[values]]))


def test_the_micro_model_computes_the_table_of_the_docstring(micro, row):
    assert stream_after(micro, row, []) == UNTOUCHED
    found = read_residuals(micro, row, [(0, "pre"), (0, "mid"), (0, "post")])
    assert found[0, "pre"].tolist() == [[[1, 0], [0, 1]]]
    assert found[0, "mid"].tolist() == [[[2, 0], [0.5, 1.5]]]
    assert found[0, "post"].tolist() == [UNTOUCHED]


@pytest.mark.parametrize(
    ("site", "second"),
    [
        ("pre", [1.0, 1.5]),  # attention still brings (1/2, 0): mid (1/2, 0), MLP (1/2, 3/2)
        ("mid", [0.0, 0.0]),
        ("post", [0.0, 0.0]),
    ],
)
def test_a_stream_written_to_at_a_site_is_what_comes_after(micro, row, site, second):
    assert stream_after(micro, row, residual(0, site, write_second(0.0, 0.0))) == [UNTOUCHED[0], second]


def test_a_written_mid_reaches_both_the_mlp_and_the_stream_itself(micro, row):
    # MLP (1 + 2, 3 + 4) on top of (1, 1)
    assert stream_after(micro, row, residual(0, "mid", write_second(1.0, 1.0))) == [UNTOUCHED[0], [4.0, 8.0]]


def test_transformer_lens_own_mid_still_reaches_the_mlp_alone(micro, row):
    zero = write_second(0.0, 0.0)
    hook = ("blocks.0.hook_resid_mid", lambda stream, hook: zero(stream))
    # the MLP gives nothing, but (1/2, 3/2) is still there: no way to write to the stream
    assert stream_after(micro, row, [hook]) == [UNTOUCHED[0], [0.5, 1.5]]


def test_heads_look_where_they_are_told(micro, row):
    first_alone = torch.tensor([[1.0, 0.0]])  # mid (1, 1), MLP (3, 7)
    hook = pattern(
        0, lambda pattern_BHTT: put(pattern_BHTT.transpose(1, 2), SECOND, first_alone[None, None]).transpose(1, 2)
    )
    assert stream_after(micro, row, [hook]) == [UNTOUCHED[0], [4.0, 8.0]]


def test_heads_hand_on_what_they_are_told(micro, row):
    # mid (0, 1) + (1, 1), MLP (1 + 4, 3 + 8)
    hook = heads(0, lambda z_BTHZ: put(z_BTHZ, SECOND, torch.ones(1, 1, 1, 2)))
    assert stream_after(micro, row, [hook]) == [UNTOUCHED[0], [6.0, 13.0]]


def test_reading_sees_what_was_written(micro, row):
    hooks = residual(0, "mid", write_second(1.0, 1.0))
    found = read_residuals(micro, row, [(0, "pre"), (0, "mid"), (0, "post")], hooks)
    assert found[0, "pre"][0, 1].tolist() == [0, 1]
    assert found[0, "mid"][0, 1].tolist() == [1, 1]
    assert found[0, "post"][0, 1].tolist() == [4, 8]


def test_two_changes_at_mid_follow_one_another(micro, row):
    both = residual(0, "mid", lambda stream: stream + 1) + residual(0, "mid", lambda stream: 2 * stream)
    # mid ((2, 0) + 1) * 2 = (6, 2) and ((1/2, 3/2) + 1) * 2 = (3, 5)
    assert stream_after(micro, row, both) == [[6 + 10, 2 + 26], [3 + 13, 5 + 29]]


def test_a_change_at_pre_goes_before_one_at_mid(micro, row):
    hooks = residual(0, "pre", write_second(0.0, 0.0)) + residual(0, "mid", lambda stream: 2 * stream)
    # mid (1/2, 0) * 2
    assert stream_after(micro, row, hooks)[1] == [2.0, 3.0]


def test_hooks_are_gone_afterwards_and_after_an_exception(micro, row):
    def fail(stream: torch.Tensor) -> torch.Tensor:
        raise ZeroDivisionError

    for site in ("pre", "mid", "post"):
        with pytest.raises(ZeroDivisionError):
            micro.logits(row, [*residual(0, site, write_second(0.0, 0.0)), *residual(0, "post", fail)])
        assert stream_after(micro, row, []) == UNTOUCHED
    assert not [name for name, point in micro.bridge.hook_dict.items() if point.fwd_hooks]


def test_gradients_flow_through_interventions(micro, row):
    added_D = torch.zeros(2, requires_grad=True)
    logits_BTV = micro.logits(row, residual(0, "mid", lambda stream: stream + added_D))
    logits_BTV[0, 1].sum().backward()
    assert added_D.grad is not None
    assert added_D.grad.tolist() == [1 + 1 + 3, 1 + 2 + 4]  # the stream's own, and W's columns


def test_places_are_put_and_taken_row_by_row():
    tokens_BT = torch.tensor([[1, 2, 3], [4, 5, 6]])
    at_BP = torch.tensor([[2, 0], [1, -1]])
    assert take(tokens_BT, at_BP).tolist() == [[3, 1], [5, 4]]
    changed_BT = put(tokens_BT, at_BP, torch.tensor([[30, 10], [50, 99]]))
    assert changed_BT.tolist() == [[10, 2, 30], [4, 50, 6]]
    assert tokens_BT.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert put(tokens_BT, torch.full((2, 1), -1), torch.zeros(2, 1)).equal(tokens_BT)


@pytest.fixture(scope="module", params=["native", "llama", "multi-query llama", "tricase"])
def adder(request: pytest.FixtureRequest):
    match request.param:
        case "native":
            return native_adder()
        case "llama":
            return llama_adder()
        case "tricase":
            return tricase_adder()
        case _:
            return llama_adder(1, key_value_heads=1)


NUMBERS = [(999999, 1), (123456, 654321), (444445, 555555), (0, 0), (9, 1), (500, 500), (807060, 4), (31, 999969)]


@torch.inference_mode()
def test_the_known_adders_are_right_and_look_where_it_is_said(adder):
    sums, known = adder.sums(NUMBERS), adder.known
    patterns = [f"blocks.{layer}.attn.hook_pattern" for layer in (0, 1)]
    logits_BTV, found = adder.activations(sums, patterns)
    assert sums.read(logits_BTV).exact_B.all()
    there_BK = sums.has_digit_BK
    for (layer, head), (operand, offset) in known.looks_at.items():
        looks_BKT = take(found[patterns[layer]][:, head], sums.query_at_BK)
        key_BK = (sums.a_at_BK if operand == "a" else sums.b_at_BK) + offset
        mass_BK = looks_BKT.gather(2, key_BK.clamp(min=0)[..., None])[..., 0]
        assert (mass_BK[there_BK] > 0.999).all()


@torch.inference_mode()
def test_the_known_carry_is_where_it_is_said_and_turning_it_turns_the_digit(adder):
    sums, known = adder.sums(NUMBERS), adder.known
    there_BK = sums.has_digit_BK
    carry_BK = torch.tensor(sums.columns.carry)
    for (layer, site), stream_BTD in read_residuals(adder, sums, known.carry_sites).items():
        read_BK = take(stream_BTD, sums.query_at_BK) @ known.carry_D
        torch.testing.assert_close(read_BK[there_BK], carry_BK[there_BK].float(), atol=2e-3, rtol=0)
        turned_BKD = take(stream_BTD, sums.query_at_BK) + (1 - 2 * carry_BK[..., None]) * known.carry_D
        hooks = residual(layer, site, lambda stream, new=turned_BKD: put(stream, sums.query_at_BK, new))
        digits_BK = take(adder.logits(sums, hooks), sums.query_at_BK)[..., :10].argmax(-1)
        wanted_BK = torch.tensor((sums.columns.a + sums.columns.b + 1 - sums.columns.carry) % 10)
        assert digits_BK[there_BK].equal(wanted_BK[there_BK])
    before = read_residuals(adder, sums, [(0, "mid")])[0, "mid"]
    assert (take(before, sums.query_at_BK) @ known.carry_D).abs().max() < 2e-3


@torch.inference_mode()
def test_only_the_heads_that_are_said_to_matter_do(adder):
    sums, known = adder.sums(NUMBERS), adder.known

    def without_its_news(layer: int, head: int) -> torch.Tensor:
        def forget(z_BTHZ: torch.Tensor) -> torch.Tensor:
            forgotten = z_BTHZ.clone()
            forgotten[:, :, head] = z_BTHZ[:, :, head].mean(0)
            return forgotten

        return sums.read(adder.logits(sums, [heads(layer, forget)])).digits_BK.nanmean()

    for place in (known.decoy, *known.idle_heads):
        assert without_its_news(*place) == 1
    for place in (*known.carry_heads, *known.digit_heads):
        assert without_its_news(*place) < 0.9


@torch.inference_mode()
def test_transformer_lens_own_mid_does_not_reach_the_stream_of_an_adder(adder):
    sums, known = adder.sums(NUMBERS[:1]), adder.known
    wrong = lambda stream: stream + 5 * known.digit_D  # noqa: E731
    theirs = [("blocks.0.hook_resid_mid", lambda stream, hook: wrong(stream))]
    untouched, nowhere, everywhere = (adder.logits(sums, hooks) for hooks in ([], theirs, residual(0, "mid", wrong)))
    torch.testing.assert_close(nowhere, untouched, atol=0.1, rtol=0)
    assert (everywhere - untouched).abs().max() > 5
