import time

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from lab.engines.choosing import Chooser
from lab.engines.engine import GREEDY, Request, Sampling
from lab.engines.local import LocalEngine
from lab.errors import ModelError
from lab.numbers.sampling import Cell, problem
from lab.numbers.tasks import TASKS
from lab.text.examples import Message
from lab.text.prompts import prompt


@pytest.fixture(scope="module")
def parts(toy_model):
    return AutoModelForCausalLM.from_pretrained(toy_model, dtype=torch.float32), AutoTokenizer.from_pretrained(
        toy_model
    )


@pytest.fixture(scope="module")
def requests():
    asked = [
        problem(Cell(TASKS[key], 3 + i % 5), "train", 0, i) for key in ("add_integer", "max_float") for i in range(9)
    ]
    return [Request(prompt(p), 4 + i % 7, p.representation) for i, p in enumerate(asked)]


def plain(model, tokenizer, request):
    """The reference: one request at a time through transformers' own generate."""
    ids = tokenizer(request.prompt, return_tensors="pt")
    tokens = model.generate(**ids, max_new_tokens=request.max_tokens, do_sample=False)[0, ids.input_ids.shape[1] :]
    return tokenizer.decode(tokens, skip_special_tokens=True), len(tokens)


def collect(engine, requests, done=frozenset(), sampling=GREEDY):
    return {i: item for batch in engine.generate(requests, sampling, set(done)) for i, item in batch.items()}


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 4, 64])
def test_batched_generation_writes_what_one_request_at_a_time_does(parts, requests, batch_size):
    found = collect(LocalEngine(*parts, batch_size), requests)
    assert len(found) == len(requests)
    for i, request in enumerate(requests):
        text, tokens = plain(*parts, request)
        assert (found[i].text, found[i].completion_tokens) == (text, tokens)
        assert found[i].prompt_tokens == len(parts[1].encode(request.prompt))


def test_what_is_done_is_left_out_and_the_rest_comes_as_in_a_whole_run(parts, requests):
    engine = LocalEngine(*parts, 4)
    whole = collect(engine, requests)
    rest = collect(engine, requests, done={0, 1, 2, 11})
    assert set(rest) == set(whole) - {0, 1, 2, 11}
    assert all(rest[i].text == whole[i].text for i in rest)


def test_a_request_stops_once_it_is_decided_and_never_past_its_budget(parts, requests):
    found = collect(LocalEngine(*parts, 4), [r._replace(decided=lambda text: len(text) >= 3) for r in requests])
    assert {completion.finish_reason for completion in found.values()} <= {"decided", "stop"}
    assert all(c.completion_tokens <= 12 for c in found.values())
    whole = collect(LocalEngine(*parts, 4), requests)
    assert all(
        c.completion_tokens <= r.max_tokens for c, r in zip([whole[i] for i in range(18)], requests, strict=True)
    )
    assert {completion.finish_reason for completion in whole.values()} <= {"length", "stop"}


def test_equal_prompts_and_single_tokens_are_no_special_case(parts):
    requests = [Request("5", 3), Request("5", 3), Request("55", 3)]
    found = collect(LocalEngine(*parts, 8), requests)
    assert found[0].text == found[1].text == plain(*parts, requests[0])[0]
    assert found[2].text == plain(*parts, requests[2])[0]


@pytest.mark.slow
def test_sampling_draws_the_same_for_a_request_whatever_its_batch_and_differently_with_another_seed(parts, requests):
    sampling = Sampling(temperature=0.6, top_p=0.9, seed=1)
    whole = collect(LocalEngine(*parts, 64), requests, sampling=sampling)
    one_by_one = collect(LocalEngine(*parts, 1), requests, sampling=sampling)
    rest = collect(LocalEngine(*parts, 4), requests, done={0, 5}, sampling=sampling)
    assert [whole[i].text for i in range(18)] == [one_by_one[i].text for i in range(18)]
    assert all(rest[i].text == whole[i].text for i in rest)
    other = collect(LocalEngine(*parts, 64), requests, sampling=sampling._replace(seed=2))
    assert [other[i].text for i in range(18)] != [whole[i].text for i in range(18)]


def test_a_nucleus_of_one_token_is_greedy(parts, requests):
    greedy = collect(LocalEngine(*parts, 8), requests)
    narrow = collect(LocalEngine(*parts, 8), requests, sampling=Sampling(temperature=1.0, top_p=1e-9))
    assert [narrow[i].text for i in range(18)] == [greedy[i].text for i in range(18)]


def test_tokens_are_drawn_by_their_probability_within_the_nucleus():
    logits = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05]))
    chooser = Chooser(Sampling(temperature=1.0, top_p=0.9), 0)
    drawn = torch.stack([chooser(logits) for _ in range(4000)]).bincount(minlength=4) / 4000
    # 0.5 + 0.3 is not yet 0.9, so the third belongs to the nucleus and the fourth does not.
    assert torch.allclose(drawn, torch.tensor([0.5, 0.3, 0.15, 0.0]) / 0.95, atol=0.03)


def test_a_turn_ends_at_any_of_the_tokens_that_the_generation_config_names(parts, requests):
    model, tokenizer = parts
    usual = model.generation_config.eos_token_id
    ids = tokenizer(requests[0].prompt, return_tensors="pt")
    third = int(model.generate(**ids, max_new_tokens=3, do_sample=False)[0, -1])
    model.generation_config.eos_token_id = [usual, third]
    try:
        found = collect(LocalEngine(model, tokenizer, 8), requests)
        assert found[0].finish_reason == "stop"
        for i, request in enumerate(requests):
            assert found[i].completion_tokens == plain(model, tokenizer, request)[1]
    finally:
        model.generation_config.eos_token_id = usual


def test_completions_come_as_they_finish_and_their_seconds_are_those_that_passed(parts, requests):
    began = time.perf_counter()
    batches = list(LocalEngine(*parts, 64).generate(requests))
    assert len(batches) > 1
    total = sum(completion.seconds for batch in batches for completion in batch.values())
    assert 0 < total <= time.perf_counter() - began


def test_a_template_that_opens_the_thoughts_is_completed(parts):
    model, tokenizer = parts
    tokenizer.chat_template = "{{ messages[0].content }}<think>\n"
    try:
        found = collect(LocalEngine(model, tokenizer, 1), [Request((Message("user", "1+1"),), 3)])
        assert found[0].text.startswith("<think>")
    finally:
        tokenizer.chat_template = None


@pytest.mark.parametrize("template", [None, "{{ raise_exception('no system messages') }}"])
def test_messages_that_the_template_does_not_take_are_one_line(parts, template):
    model, tokenizer = parts
    tokenizer.chat_template = template
    try:
        with pytest.raises(ModelError, match="chat template"):
            LocalEngine(model, tokenizer, 1).check(Request((Message("system", "Add."),), 3))
        LocalEngine(model, tokenizer, 1).check(Request("1 + 1 =", 3))
    finally:
        tokenizer.chat_template = None
