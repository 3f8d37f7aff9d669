"""Position ids of an adder that knows places by RoPE alone, and of models from scratch whose ids are known."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.config.notation import FormatConfig, TokenizerConfig
from lab.config.pretraining import PositionsConfig, ScratchConfig
from lab.errors import ModelError
from lab.models import scratch
from lab.numbers.tasks import TASKS
from lab.probing.bridge import bridge
from lab.probing.instruments.remap import compressed, ids, logits, remap, spread
from lab.probing.positions import NotatedSums
from lab.text.notation import Notation
from lab.text.scratch_tokenizer import build_tokenizer
from tests.probing.known_adders import TOKENS, llama_adder, native_adder

NUMBERS = [(123, 989), (504, 77), (999, 1), (350, 850)]


def untrained(encoding, kind):
    notation = Notation(TokenizerConfig(), FormatConfig(reverse="each"), [TASKS["add_integer"]])
    config = ScratchConfig(encoding=encoding, positions=PositionsConfig(kind=kind, largest=64))
    model = scratch.build(config, notation.vocabulary, 0).eval()
    return bridge("untrained", model, NotatedSums(notation, build_tokenizer(notation.vocabulary)))


@pytest.fixture(scope="module")
def adder():
    return llama_adder()


def test_an_adder_of_relative_places_can_be_shifted_and_nothing_else(adder):
    found = remap(adder, {3: adder.sums(NUMBERS)}, trained=TOKENS // 2, shift=5).exact.at(length=3)
    assert found.at(ids="as they are").value == 1
    assert found.at(ids="shifted").value == 1
    assert found.at(ids="compressed").value == 0
    assert found.at(ids="random order").value == 0


def test_ids_within_what_was_trained_are_not_compressed(adder):
    found = remap(adder, {3: adder.sums(NUMBERS)}, trained=TOKENS)
    assert found.exact.at(length=3, ids="compressed").value == 1
    assert found.digits.axes == {"ids": ["as they are", "shifted", "compressed", "random order"], "length": [3]}


@pytest.mark.parametrize(
    ("encoding", "kind"),
    [("rope", "plain"), ("alibi", "plain"), ("fire", "randomised"), ("learned", "coupled"), ("learned", "abacus")],
)
def test_own_ids_give_the_models_own_logits_and_others_give_others(encoding, kind):
    subject = untrained(encoding, kind)
    sums = subject.sums(NUMBERS)
    with torch.inference_mode():
        expected = subject.logits(sums)
        torch.testing.assert_close(logits(subject, sums, ids(subject, sums)), expected)
        changed = spread(ids(subject, sums), 64, np.random.default_rng(0))
        assert not torch.allclose(logits(subject, sums, changed), expected, atol=1e-4)
    found = remap(subject, {3: sums}, trained=4, batch_size=3)
    assert found.digits.n.tolist() == [[4]] * 4


def test_coupled_ids_are_shifted_as_in_training_and_begin_stays():
    subject = untrained("learned", "coupled")
    sums = subject.sums([(23, 9)])  # <begin> 3 2 <add_integer> 9 = 2 3 <end>
    assert ids(subject, sums).tolist() == [[0, 1, 2, 0, 1, 0, 1, 2, 3]]
    assert ids(subject, sums, shift=62).tolist() == [[0, 63, 0, 62, 63, 62, 63, 0, 1]]


def test_compressed_ids_are_worked_out_by_hand():
    row = torch.tensor([[0, 1, 2, 4, 8]])
    assert compressed(row, 5, whole=False).tolist() == [[0, 0.5, 1, 2, 4]]
    assert compressed(row, 4, whole=True).tolist() == [[0, 0, 1, 2, 3]]
    assert compressed(row, 9, whole=True).equal(row)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=20), st.integers(31, 90), st.integers(0, 2**32))
def test_random_ids_keep_order_and_equality(row, room, seed):
    changed = spread(torch.tensor([row]), room, np.random.default_rng(seed))[0].tolist()
    assert max(changed) < room
    order = np.array(row)
    assert np.array_equal(np.sign(order[:, None] - order), np.sign(np.subtract.outer(changed, changed)))


def test_models_without_position_ids_are_refused_in_one_line():
    adder = native_adder()
    with pytest.raises(ModelError, match="native adder: position ids can only be changed in NumberLlama and in models"):
        remap(adder, {3: adder.sums(NUMBERS)}, trained=9)
    subject = untrained("nope", "plain")
    with pytest.raises(ModelError, match="encoding nope uses no position ids"):
        remap(subject, {3: subject.sums(NUMBERS)}, trained=9)
