"""The speed of activation patching of all heads, compared with TransformerLens's stock sweep: same model, prompts and
results.

    python -m benchmarks.speed_patching [prompts] [model]

Each head of SmolLM2-135M (270) is patched at all positions, in runs of 64 prompts by default: additions of three
digits, written with their answers, half of them with a carry into the hundreds and half without. The stock sweep is
`transformer_lens.patching`, with one pass for each head. Both are timed from the tokens to a margin for each head and
prompt, including the runs on the sources. One of the lab's savings is easy to imitate by hand: leaving out the tokens
after the query. So the stock sweep is also timed on rows that are cut off there, for one head of each layer.
"""

import sys
import time
import warnings
from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import torch
from transformer_lens import patching as stock
from transformers.utils import logging

from lab.errors import exit_cleanly
from lab.probing.addition.pairs import carry_only
from lab.probing.addition.positions import Sums
from lab.probing.answered import Answered
from lab.probing.bridge import open_model
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE
from lab.probing.instruments.patching import Patch, margins


def stock_margins(answered: Answered, base: Sums, source: Sums, heads: Sequence[tuple[int, int]]) -> np.ndarray:
    """Margins (B, heads) by the stock sweep."""
    bridge = answered.subject.bridge
    query_B = base.query_at_BK[:, answered.contrast.column]
    row_B = torch.arange(len(base))

    def metric(logits_BTV: torch.Tensor) -> torch.Tensor:
        found_BV = logits_BTV[row_B, query_B]
        return (
            found_BV[row_B, answered.contrast.source_id_BQ[:, 0]] - found_BV[row_B, answered.contrast.base_id_BQ[:, 0]]
        )

    _, cache = bridge.run_with_cache(source.tokens_BT, names_filter=lambda name: name.endswith("hook_z"))
    # what stock.get_act_patch_attn_head_out_all_pos does, for the given heads
    index, setter = pd.DataFrame(heads, columns=["layer", "head"]), stock.layer_head_vector_patch_setter
    found = stock.generic_activation_patch(
        bridge, base.tokens_BT, cache, metric, setter, "z", index_df=index, reduce="none"
    )
    return found.values.T.numpy()


def our_margins(answered: Answered, heads: Sequence[tuple[int, int]]) -> np.ndarray:
    """Margins (B, heads) by the lab."""
    return margins(answered, [Patch((Component("head", layer, head),), EVERYWHERE) for layer, head in heads])


@exit_cleanly
def main() -> None:
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    prompts = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    subject = open_model(sys.argv[2] if len(sys.argv) > 2 else "smollm2-135m-instruct", "{a}+{b}=")
    pairs = carry_only(3, 1, prompts // 2, seed=0)
    base, source = subject.sums([*pairs.base, *pairs.source]), subject.sums([*pairs.source, *pairs.base])
    heads = list(product(range(subject.layers), range(subject.heads)))
    with torch.inference_mode():
        answered = Answered(subject, pairs)
        subject.logits(base)  # work that is done only once is not timed for either
        began = time.perf_counter()
        ours = our_margins(answered, heads)
        lab = (time.perf_counter() - began) / len(heads)
        began = time.perf_counter()
        theirs = stock_margins(answered, base, source, heads)
        whole = (time.perf_counter() - began) / len(heads)
        one_a_layer = heads[:: subject.heads]
        began = time.perf_counter()
        stock_margins(answered, answered.contrast.base, answered.contrast.source, one_a_layer)
        cut = (time.perf_counter() - began) / len(one_a_layer)
    print(f"{len(heads)} heads, {len(base)} prompts of {base.tokens_BT.shape[1]} tokens, seconds a head")
    print(f"lab {lab:.3f}, TransformerLens {whole:.3f}, ratio {whole / lab:.2f}")
    print(
        f"TransformerLens with rows cut at {answered.contrast.base.tokens_BT.shape[1]} tokens {cut:.3f}, "
        f"ratio {cut / lab:.2f}"
    )
    gap, spread = np.abs(ours - theirs).max(), theirs.std(axis=1).mean()
    print(f"largest difference of a margin {gap:.2g} logits; from head to head margins differ by {spread:.2g}")


if __name__ == "__main__":
    main()
