import torch
from transformers import AutoModelForCausalLM

import experiments.parts.slower_rope  # noqa: F401 - registers the part
from tests.from_scratch import built
from tests.scratch.test_llama import WORDS


def test_a_rope_factor_divides_position_ids_and_a_saved_model_keeps_it(tmp_path):
    slow = {"coupled_ids": {}, "slower_rope": {"factor": 4}}
    usual, slower = (built(WORDS, parts) for parts in ({"coupled_ids": {}}, slow))
    slower.save_pretrained(tmp_path)
    ids_BT, states = torch.arange(9)[None], torch.zeros(1, 9, 1)
    for model in (slower, AutoModelForCausalLM.from_pretrained(tmp_path)):
        for one, other in zip(
            usual.model.rotary_emb(states, ids_BT), model.model.rotary_emb(states, 4 * ids_BT), strict=True
        ):
            assert torch.allclose(one, other, atol=1e-6)
