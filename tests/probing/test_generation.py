"""Answers that are written while the model is changed."""

import pytest
import torch

from lab.errors import TaskError
from lab.probing import interventions
from lab.probing.addition.positions import TextSums
from lab.probing.bridge import bridge
from lab.probing.generation import generate, generate_tokens
from tests.probing.known_adders import native_adder
from tests.probing.test_any_model import drawn, tokenizer


def asked(adder, a: int, b: int) -> tuple[list[int], list[int]]:
    """The question and the answer with its end, as tokens."""
    written = adder.writer.write(a, b)
    return written.ids[: written.equals_at + 1], written.ids[written.equals_at + 1 :]


def test_an_answer_is_what_the_model_writes_step_by_step_and_changes_with_the_hooks_of_each_step():
    adder = native_adder()
    (question, answer), (other, _) = asked(adder, 27, 35), asked(adder, 1234, 13)
    assert generate_tokens(adder, [question], tokens=len(answer)) == [answer]
    both = generate_tokens(adder, [question, other], tokens=len(answer), batch_size=1)
    assert both[0] == answer
    layer, _ = adder.known.carry_heads[0]

    def without_head(z):
        changed = z.clone()
        changed[:, :, [place[1] for place in adder.known.carry_heads if place[0] == layer]] = 0
        return changed

    lengths = []

    def hooks(tokens_BT: torch.Tensor):
        lengths.append(tokens_BT.shape[1])
        return [interventions.heads(layer, without_head)]

    changed = generate_tokens(adder, [question], hooks, tokens=2)[0]
    assert changed[0] == answer[0]  # there is no carry into the ones
    assert changed[1] != answer[1]
    assert lengths == [len(question), len(question) + 1]


def test_texts_are_continued_up_to_the_end_token():
    words = tokenizer()
    subject = bridge("drawn", drawn("gpt2", words), TextSums(words, "{a}+{b}="), words)
    (text,) = generate(subject, ["12+9="], tokens=4)
    ids, first = torch.tensor([words("12+9=").input_ids]), []
    for _ in range(4):
        with torch.inference_mode():
            ids = torch.cat([ids, subject.bridge(ids)[:, -1:].argmax(-1)], 1)
        first.append(int(ids[0, -1]))
    first = first[: first.index(1)] if 1 in first else first
    assert text == "".join(subject.writer.words(first))
    with pytest.raises(TaskError, match="no prompts"):
        generate(subject, [])
