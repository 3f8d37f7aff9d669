"""Activation patching of all heads against TransformerLens' stock sweep: same model, same prompts, same numbers.

    python experiments/speed_patching.py [prompts] [model]

Each head of SmolLM2-135M (270) is patched at all positions, in runs of 64 prompts by default: additions of three digits,
half of them with a carry into the hundreds and half without. Stock is `transformer_lens.patching`, one pass a head; both
are timed from the tokens to a margin for each head and prompt, the runs of sources included, in one process.
"""

import sys
import time
import warnings

import numpy as np
import torch
from transformer_lens import patching as stock
from transformers.utils import logging

from lab.probing.bridge import open_model
from lab.probing.contrast import EVERYWHERE, Contrast
from lab.probing.pairs import carry_only
from lab.probing.patching import Component, Patch, margins


def stock_margins(contrast: Contrast) -> np.ndarray:
    """(B, layers * heads)."""
    bridge, base, source = contrast.subject.bridge, contrast.base, contrast.source
    query_B = base.query_at_BK[:, contrast.column]
    row_B = torch.arange(len(base))

    def metric(logits_BTV: torch.Tensor) -> torch.Tensor:
        found_BV = logits_BTV[row_B, query_B]
        return found_BV[row_B, contrast.source_id_B] - found_BV[row_B, contrast.base_id_B]

    _, cache = bridge.run_with_cache(source.tokens_BT, names_filter=lambda name: name.endswith("hook_z"))
    found = stock.get_act_patch_attn_head_out_all_pos(bridge, base.tokens_BT, cache, metric, reduce="none")
    return found.values.flatten(0, 1).T.numpy()


def our_margins(contrast: Contrast) -> np.ndarray:
    """The same."""
    subject = contrast.subject
    heads = [Component("head", layer, head) for layer in range(subject.layers) for head in range(subject.heads)]
    return margins(contrast, [Patch((head,), EVERYWHERE) for head in heads])[0]


def main() -> None:
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    prompts = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    subject = open_model(sys.argv[2] if len(sys.argv) > 2 else "smollm2-135m-instruct", "{a}+{b}=")
    contrast = Contrast(subject, carry_only(3, 1, prompts // 2, seed=0))
    found, seconds = {}, {}
    with torch.inference_mode():
        subject.logits(contrast.base)  # what is done only once is nobody's
        for name, measure in (("lab", our_margins), ("TransformerLens", stock_margins)):
            began = time.perf_counter()
            found[name] = measure(contrast)
            seconds[name] = time.perf_counter() - began
    heads, (ours, theirs) = subject.layers * subject.heads, found.values()
    for name, took in seconds.items():
        print(f"{name:>16}  {took:7.1f} s  {took / heads * 1000:6.0f} ms a head  ({heads} heads, {len(contrast)} prompts)")
    print(f"ratio {seconds['TransformerLens'] / seconds['lab']:.2f}")
    gap, spread = np.abs(ours - theirs).max(), theirs.std(axis=1).mean()
    print(f"largest difference of a margin {gap:.2g} logits; from head to head margins differ by {spread:.2g}")


if __name__ == "__main__":
    main()
