import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from lab.errors import ModelError
from lab.parts.clipped_distances import Clipped
from lab.parts.positions import Positions
from tests.scratch.test_llama import encode, tiny

WIDTH = 8
ROTARY = LlamaRotaryEmbedding(LlamaConfig(hidden_size=WIDTH, num_attention_heads=1, head_dim=WIDTH))


def turned(states_TD: torch.Tensor, ids_T: torch.Tensor) -> torch.Tensor:
    states_11TD = states_TD[None, None]
    return apply_rotary_pos_emb(states_11TD, states_11TD, *ROTARY(states_11TD, ids_T[None]))[0][0, 0]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(0, 70), st.sampled_from([None, 64, 128]))
def test_scores_are_those_of_rope_at_the_clipped_distance_from_query_to_key(ids, distance, circle):
    positions_T = torch.tensor(ids)
    query_TD, key_TD = torch.randn(2, len(ids), WIDTH, generator=torch.Generator().manual_seed(0))
    positions = Positions.of(positions_T[None], positions_T[None], circle)
    clipped = Clipped(distance, positions, lambda ids_BT: ROTARY(query_TD[None], ids_BT))
    query, key = (turned(states, positions_T)[None, None] for states in (query_TD, key_TD))
    mask = torch.zeros(1, 1, len(ids), len(ids))
    products_QK = clipped.scores(0, query @ key.transpose(-1, -2), query, key, mask, 1.0)[0, 0]
    for asks in range(len(ids)):
        for seen_at in range(len(ids)):
            ahead = ids[seen_at] - ids[asks]
            shorter = ahead if circle is None else (ahead + circle // 2) % circle - circle // 2
            # a key that is near round the circle is turned by its id, as in RoPE without clipping
            seen = ahead if abs(shorter) <= distance else (distance if shorter > 0 else -distance)
            by_hand = query_TD[asks] @ turned(key_TD[seen_at : seen_at + 1], torch.tensor([seen]))[0]
            assert products_QK[asks, seen_at] == pytest.approx(by_hand.item(), abs=1e-4)


@torch.inference_mode()
def test_a_model_is_clipped_after_its_training_and_sees_the_same_within_the_distance():
    model = tiny("rope", "coupled")
    short, long = (torch.tensor([encode(f"<begin> {row} =")]) for row in ("5 2 <add_integer> 7", "1 2 3 4 5 6 7 8 9"))
    before = [model(ids).logits for ids in (short, long)]
    model.change_parts({"clipped_distances": {"at": 3}})
    assert torch.allclose(model(short).logits, before[0], atol=1e-5)
    assert not torch.allclose(model(long).logits, before[1], atol=1e-2)
    model.change_parts({"clipped_distances": {"at": 9}})
    assert torch.allclose(model(long).logits, before[1], atol=1e-5)
    model.change_parts({"clipped_distances": None})
    assert torch.equal(model(long).logits, before[1])
    with pytest.raises(ModelError, match=r"clipped_distances works only with RoPE, not with parts\.relative_keys"):
        tiny("relative", "coupled").change_parts({"clipped_distances": {"at": 3}})
