import hashlib
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from lab.engines import local
from lab.engines.engine import GREEDY, Request, Sampling
from lab.engines.local import LocalEngine
from lab.errors import ModelError
from lab.trees import prefill as reading
from lab.trees.cache import RaggedCache

RULE = "def add(a, b):\n    total = int(a[-3:]) + int(b[-3:]) + carry\n    carry = total // 1000\n"


class Recaller(torch.nn.Module):
    """A causal model whose attention is transparent: its keys and values are the tokens themselves.

    Seven times in eight it repeats the token that followed the same two tokens earlier. One time in eight, or if these
    two are new, it writes a digest of all that it sees. So if it sees too much or too little, it writes something else.
    """

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words, self.passes = words, []
        self.device, self.config, self.generation_config = torch.device("cpu"), SimpleNamespace(), None

    def next_token(self, seen: list[int]) -> int:
        digest = int.from_bytes(hashlib.blake2b(str(seen).encode(), digest_size=4).digest(), "big")
        if digest % 8:
            for end in range(len(seen) - 1, 1, -1):
                if seen[end - 2 : end] == seen[-2:]:
                    return seen[end]
        return 1 + digest // 8 % 3 if digest % 104 else 0  # 0 is the end

    def forward(self, input_ids, past_key_values, attention_mask=None, position_ids=None, logits_to_keep=0):
        states = input_ids[:, None, :, None].double()
        keys, values = past_key_values.update(states, states, 0)
        assert torch.equal(keys, values)
        rows, count = input_ids.shape
        if attention_mask is None:
            attention_mask = torch.ones(count, keys.shape[2], dtype=torch.bool).tril(keys.shape[2] - count)[None, None]
            attention_mask = attention_mask.expand(rows, 1, -1, -1)
        self.passes.append((rows, count))
        kept = range(count) if isinstance(logits_to_keep, int) else logits_to_keep.tolist()
        logits = torch.zeros(rows, len(kept), self.words, dtype=torch.double)
        for row in range(rows):
            for place, query in enumerate(kept):
                seen = keys[row, 0, attention_mask[row, 0, query], 0].long().tolist()
                if position_ids is not None:  # only generation has padding, which may be given an earlier position
                    assert position_ids[row, query] <= len(seen) - 1
                    assert isinstance(logits_to_keep, int) or position_ids[row, query] == len(seen) - 1
                logits[row, place, self.next_token(seen)] = 30  # nearly certain, even if tokens are drawn
        return SimpleNamespace(logits=logits)


@pytest.fixture(scope="module")
def model(toy_model):
    return AutoModelForCausalLM.from_pretrained(toy_model, dtype=torch.float64)


@pytest.fixture(scope="module")
def requests():
    """Prompts of 1 to 190 tokens, budgets of 1 to 60, a group that shares a rule, and some that are decided early."""
    asked = [Request(f"{RULE * (i % 3)}add({i * 7}, {i**3})\n", 1 + 13 * i % 60, "ab"[i % 2]) for i in range(12)]
    asked += [r._replace(decided=lambda text: len(text) >= 9, max_tokens=40) for r in asked[:4]]
    asked += [Request(f"{RULE}sub({i})\n", 20 + i, "rule") for i in range(3)]
    return [*asked, Request("5", 30), Request("5", 30), Request("55", 3)]


def collect(engine, requests, sampling=GREEDY, done=frozenset()):
    found = {i: item for batch in engine.generate(requests, sampling, done) for i, item in batch.items()}
    return {i: item._replace(seconds=0) for i, item in sorted(found.items())}


def alone(next_token, tokenizer, request):
    """The reference: for each token, the whole row is computed and decoded anew."""
    tokens, written = tokenizer.encode(request.prompt), []
    while True:
        written.append(next_token([*tokens, *written]))
        ended = written[-1] == tokenizer.eos_token_id
        text = tokenizer.decode(written[:-1] if ended else written, skip_special_tokens=True)
        if ended or request.decided(text) or len(written) == request.max_tokens:
            reason = "stop" if ended else "decided" if request.decided(text) else "length"
            return text, len(tokens), len(written), reason


def summary(completion):
    return completion.text, completion.prompt_tokens, completion.completion_tokens, completion.finish_reason


@pytest.fixture(scope="module")
def written_alone(model, tokenizer, requests):
    def next_token(seen):
        with torch.inference_mode():
            return int(model(torch.tensor([seen])).logits[0, -1].argmax())

    return [alone(next_token, tokenizer, request) for request in requests]


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 5, 64])
def test_a_batch_changes_nothing_in_what_a_model_writes(model, tokenizer, requests, written_alone, batch_size):
    engine = LocalEngine(model, tokenizer, batch_size)
    found = collect(engine, requests)
    assert [summary(found[i]) for i in found] == written_alone
    assert engine.written == sum(completion.completion_tokens for completion in found.values())
    assert engine.row_passes == engine.written


def test_each_row_sees_its_own_tokens_and_no_others(tokenizer, requests):
    reference = Recaller(len(tokenizer))
    engine = LocalEngine(Recaller(len(tokenizer)), tokenizer, 64)
    found = collect(engine, requests)
    assert [summary(found[i]) for i in found] == [
        alone(reference.next_token, tokenizer, request) for request in requests
    ]
    assert {"stop", "length", "decided"} == {completion.finish_reason for completion in found.values()}


@pytest.mark.slow
@pytest.mark.parametrize("top_p", [0.9, 1.0])
def test_drawn_tokens_are_the_same_in_every_batch(model, tokenizer, requests, top_p):
    sampling = Sampling(0.3, top_p, seed=1)
    alone, together = (collect(LocalEngine(model, tokenizer, size), requests, sampling) for size in (1, 64))
    assert alone == together


def test_a_resumed_job_is_computed_in_the_same_passes_as_the_whole(tokenizer, requests):
    whole, rest = (Recaller(len(tokenizer)) for _ in range(2))
    first = collect(LocalEngine(whole, tokenizer, 4), requests)
    batches = LocalEngine(whole, tokenizer, 4).batches(requests)
    again = collect(LocalEngine(rest, tokenizer, 4), requests, done=set(batches[0]) | {batches[1][0]})
    assert again == {i: item for i, item in first.items() if i not in {*batches[0], batches[1][0]}}
    later = rest.passes[-20:]
    assert whole.passes[-20:] == later


def test_a_long_beginning_is_read_once_a_group_however_many_trees_and_batches_it_has(tokenizer, monkeypatch):
    monkeypatch.setattr(reading, "_TOKENS_A_TREE", {"cpu": 40})  # four of these questions
    rules = {"a": RULE, "b": RULE.replace("add", "sub")}
    asked = [Request(f"{rules[group]}q({i:03})\n", 1, group) for group in rules for i in range(24)]
    model = Recaller(len(tokenizer))
    found = collect(LocalEngine(model, tokenizer, 8), asked)
    shared = [len(tokenizer.encode(f"{rule}q(0")) for rule in rules.values()]  # no question is above 99
    counts = [count for _, count in model.passes]
    assert [count for count in counts if count > 40] == shared
    assert sum(counts) < sum(shared) + len(asked) * 5
    reference = Recaller(len(tokenizer))
    assert [summary(found[i]) for i in found] == [alone(reference.next_token, tokenizer, request) for request in asked]


def test_a_beginning_that_is_a_whole_prompt_is_read_all_the_same(tokenizer):
    asked = [Request(RULE, 5), Request(RULE, 5), Request(RULE + "a", 5)]
    model = Recaller(len(tokenizer))
    found = collect(LocalEngine(model, tokenizer, 8), asked)
    assert [summary(found[i]) for i in found] == [alone(model.next_token, tokenizer, request) for request in asked]


def test_the_cache_grows_as_completions_do(tokenizer, requests, monkeypatch):
    engine = LocalEngine(Recaller(len(tokenizer)), tokenizer, 64)
    whole = collect(engine, requests)
    monkeypatch.setattr(local, "_ROOM", 2)
    assert collect(engine, requests) == whole


def test_room_doubles_until_it_is_what_can_be_needed_and_keeps_what_is_there():
    cache = RaggedCache(2, 4, 100)
    cache.fill(0, [(torch.ones(2, 1, 3, 1), torch.ones(2, 1, 3, 1))])
    rooms = []
    for length in range(3, 100):
        cache.place([length, 3], [1, 1])
        keys, _ = cache.update(*[torch.full((2, 1, 1, 1), float(length))] * 2, 0)
        assert keys.shape == (2, 1, length + 1, 1)
        assert keys[0, 0, :, 0].tolist() == [1, 1, 1, *range(3, length + 1)]
        if cache.room not in rooms:
            rooms.append(cache.room)
    assert rooms == [4, 8, 16, 32, 64, 100]
    cache.place([100, 3], [5, 1])
    assert cache.room == 105  # more is needed after all


def test_rows_of_different_lengths_share_a_cache_and_what_is_refused_is_overwritten_unseen():
    cache = RaggedCache(2, 8, 8)
    prompt = torch.tensor([[1.0, 2, 3], [4, 0, 0]])[:, None, :, None]
    cache.fill(0, [(prompt, prompt)])
    inputs = cache.place([3, 1], [2, 1])
    assert inputs["position_ids"].tolist() == [[3, 4], [1, 1]]  # the second token of the second row is padding
    assert inputs["attention_mask"][1, 0].int().tolist() == [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]]
    draft = torch.tensor([[5.0, 6], [7, 0]])[:, None, :, None]
    keys, _ = cache.update(draft, draft, 0)
    assert keys[:, 0, :, 0].tolist() == [[1, 2, 3, 5, 6], [4, 7, 0, 0, 0]]
    cache.place([4, 2], [1, 1])  # 6 was refused
    keys, _ = cache.update(draft[:, :, :1] + 3, draft[:, :, :1] + 3, 0)
    assert keys[:, 0, :, 0].tolist() == [[1, 2, 3, 5, 8], [4, 7, 10, 0, 0]]
    cache.select([1])
    cache.place([3], [1])
    keys, _ = cache.update(draft[:1, :, :1], draft[:1, :, :1], 0)
    assert keys[:, 0, :, 0].tolist() == [[4, 7, 10, 5]]


@given(st.lists(st.integers(0, 256) | st.sampled_from([0xE2 + 1, 0x82, 0xAC, 0x20]), max_size=150))
def test_text_that_grows_is_the_text_of_all_its_tokens(tokenizer, written):
    text = local._GrowingText(lambda tokens: tokenizer.decode(tokens, skip_special_tokens=True))
    for i, token in enumerate(written):
        assert text.add(token) == tokenizer.decode(written[: i + 1], skip_special_tokens=True)


def test_a_long_completion_is_decoded_a_little_at_a_time(tokenizer):
    decoded = []

    def decode(tokens: list[int]) -> str:
        decoded.append(len(tokens))
        return tokenizer.decode(tokens, skip_special_tokens=True)

    text = local._GrowingText(decode)
    written = tokenizer.encode("carry = 1 €\n" * 100)
    texts = [text.add(token) for token in written]
    assert texts[-1] == "carry = 1 €\n" * 100
    assert sum(decoded) < 60 * len(written)


def test_a_model_with_learned_positions_is_never_asked_for_one_that_it_lacks(tokenizer):
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=4, n_positions=64, eos_token_id=0, initializer_range=0.3
    )
    model = GPT2LMHeadModel(config).double()
    asked = [Request("ab" * 20, 25), Request("ab" * 10, 45), Request("ab", 63), Request("abc", 4)]
    plain = collect(LocalEngine(model, tokenizer, 8), asked)
    assert plain[1].completion_tokens == 45


def test_a_model_that_looks_back_less_far_than_it_must_is_refused(tokenizer):
    model = Recaller(len(tokenizer))
    model.config, model.next_token = SimpleNamespace(sliding_window=20), lambda seen: 1 + len(seen) % 2
    engine = LocalEngine(model, tokenizer, 8)
    assert collect(engine, [Request("12345", 16)])[0].completion_tokens == 16
    with pytest.raises(ModelError, match="see only 20 tokens back"):
        collect(engine, [Request("12345", 17)])
