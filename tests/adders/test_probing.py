"""Declared adders are opened in TransformerLens with the same logits."""

import json
from pathlib import Path

import pytest
import torch

import lab
from lab.adders.probing import TemplateSums, open_adder
from lab.adders.spec import load
from lab.errors import ModelError, TaskError

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "experiments" / "plain-adder" / "adder_47.json"


def test_digits_are_found_by_the_templates():
    written = TemplateSums(load(RECORD)).write(120, 9)
    assert (written.a_at, written.b_at, written.answer_at) == ([1, 2, 3], [13], [24, 25, 26])
    assert [written.ids[place] for place in (*written.a_at, *written.b_at, *written.answer_at)] == [0, 2, 1, 9, 9, 2, 1]
    with pytest.raises(TaskError, match="at most 10 digits"):
        TemplateSums(load(RECORD)).write(10**10, 1)


@pytest.mark.slow
@pytest.mark.parametrize("path", [RECORD, ROOT / "checkpoints" / "zoo" / "adder-gpt"], ids=["llama", "gpt2"])
def test_an_adder_is_opened_and_adds(path):
    subject = open_adder(path)
    sums = subject.sums([(1234567890, 9876543210), (5555555555, 4444444445), (12, 9)])
    assert sums.read(subject.logits(sums)).exact_B.all()


@pytest.mark.slow
def test_the_instruments_measure_a_declared_adder():
    probed = lab.probe(str(RECORD), ["alignment"], digits=[10], pairs=8)
    assert "looks at a's digit of the place written" in repr(probed)


CHANGES = [
    (lambda model: model["layers"].append({"attention": {}}), "layers other than attention and ffn in turn"),
    (lambda model: model["layers"][0]["ffn"].update(post=True), "norms behind its layers"),
    (lambda model: model["layers"][0]["attention"].update(alibi=1), "slopes"),
    (lambda model: model.update(positions={"sinusoidal": 100}), "both positions and rope"),
    (lambda model: model["norm"].update(eps=0.5), "norms that differ"),
    (
        lambda model: model["layers"][0]["attention"].update(v=[[1, 0], [0, 1], [1, 1]], o=[[1, 0, 0], [0, 1, 0]]),
        "values that are wider than its keys",
    ),
    (lambda model: model.update(head={"nearest": "digits"}), "another head than a matrix"),
]


@pytest.mark.parametrize(("change", "said"), CHANGES, ids=range(len(CHANGES)))
def test_an_adder_that_transformer_lens_cannot_hold_is_refused_with_the_reason(change, said, tmp_path):
    value = json.loads(RECORD.read_text())
    change(value["model"])
    (tmp_path / "adder.json").write_text(json.dumps(value))
    with pytest.raises(ModelError, match=said):
        open_adder(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("act", ["sin", "gelu_tanh"])
@pytest.mark.parametrize("where", [{"positions": {"sinusoidal": 100}}, {"rope": {"theta": 50}}, {}])
def test_any_mixture_of_known_parts_is_opened(times, act, where, tmp_path):
    digits = torch.randn(10, 4, generator=torch.Generator().manual_seed(0))
    attention = {"q": "e4", "k": "e4", "v": "e4", "heads": 2, "scale": 0.4}
    layers = [{"attention": attention, "ffn": {"act": act, "gate": "e4", "up": {"w": "e4", "b": [1, 2, 3, 4]}}}]
    model = {"embedding": "e", "layers": layers, "times": times, "head": "e"} | where
    numbers = {"e": digits.tolist(), "e4": digits[:4].tolist()}
    value = {"numbers": numbers, "model": model, "prompt": ["a9..0", "b9..0"], "answer": ["s10..0"]}
    (tmp_path / "adder.json").write_text(json.dumps(value))
    assert open_adder(tmp_path).layers == times  # raises ModelError if the logits differ
