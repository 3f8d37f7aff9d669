import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from lab.engines.engine import Request, Sampling
from lab.engines.local import LocalEngine
from lab.engines.plain import Clock, PlainEngine, UnpaddedEngine


@pytest.fixture(scope="module")
def parts(toy_model):
    model = AutoModelForCausalLM.from_pretrained(toy_model, dtype=torch.float32)
    return model, AutoTokenizer.from_pretrained(toy_model)


REQUESTS = [Request(f"{7 * i}+{i**3}=", 3 + 5 * (i % 4), "add") for i in range(11)]
"""In batches of 4 the longest budget is 18 tokens, and 13 in the last one."""


def collect(engine, requests, done=frozenset()):
    return {i: item for batch in engine.generate(requests, done=set(done)) for i, item in batch.items()}


def facts(completions):
    return {i: item._replace(seconds=0) for i, item in completions.items()}


@pytest.mark.parametrize("enough", [99, 4])
def test_the_plain_loop_completes_as_the_local_engine_does(parts, enough):
    requests = [request._replace(decided=lambda text: len(text) >= enough) for request in REQUESTS]
    plain = collect(PlainEngine(*parts, 4), requests)
    assert facts(plain) == facts(collect(LocalEngine(*parts, 4), requests))
    reasons = {item.finish_reason for item in plain.values()}
    assert reasons == {"length", "stop"} | ({"decided"} if enough == 4 else set())


def test_an_end_is_an_end_wherever_it_comes(parts):
    tokenizer = parts[1]
    first = collect(LocalEngine(*parts, 11), REQUESTS)
    engines = PlainEngine(*parts, 4), LocalEngine(*parts, 4)
    ends = {tokenizer.encode(item.text)[len(item.text) // 2] for item in first.values() if len(item.text) > 3}
    for engine in engines:
        engine.ends = ends
    plain, local = (facts(collect(engine, REQUESTS)) for engine in engines)
    assert plain == local
    assert {item.finish_reason for item in plain.values()} == {"stop", "length"}


def test_batches_that_are_done_are_left_out(parts):
    engine = PlainEngine(*parts, 4)
    assert set(collect(engine, REQUESTS, done={0, 1, 2, 3, 5})) == {4, *range(6, 11)}
    assert engine.row_passes == 4 * 18 + 3 * 13


def test_the_time_of_a_pass_is_shared_by_the_requests_that_it_was_for():
    clock = Clock()
    clock.moments = [0.0, 6.0, 8.0, 11.0, 14.0]
    # the first pass was for all three, the second for two, the third for one, and the fourth for nobody
    assert clock.shares([1, 2, 3]) == [2 + 1, 2 + 1 + 1, 2 + 1 + 3 + 1]


def test_random_tokens_are_those_of_the_local_engine_whatever_else_is_in_the_batch(parts):
    sampling = Sampling(temperature=1.0, top_p=0.9, seed=3)
    drawn = [
        {i: item for batch in engine.generate(REQUESTS, sampling) for i, item in batch.items()}
        for engine in (
            PlainEngine(*parts, 4),
            PlainEngine(*parts, 11),
            UnpaddedEngine(*parts, 4),
            LocalEngine(*parts, 3),
        )
    ]
    texts = [[found[i].text for i in range(len(REQUESTS))] for found in drawn]
    assert texts[0] == texts[1] == texts[2] == texts[3]
    assert texts[0] != [collect(PlainEngine(*parts, 4), REQUESTS)[i].text for i in range(len(REQUESTS))]


def test_prompts_of_different_lengths_are_never_padded_where_a_model_may_read_padding(parts):
    engine = UnpaddedEngine(*parts, 4)
    batches = engine.batches(REQUESTS)
    assert sorted(index for batch in batches for index in batch) == list(range(len(REQUESTS)))
    assert all(len({len(REQUESTS[i].prompt) for i in batch}) == 1 for batch in batches)
