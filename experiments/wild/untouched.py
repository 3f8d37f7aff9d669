"""Compares a model of two readings with the untouched model, loaded on its own: logits, and what each writes.

python -m experiments.wild.untouched model=FOLDER cases=FILE most=100
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from experiments.wild.wordings import wordings
from lab.config.schema import ModelConfig
from lab.models import pretrained
from lab.second_reading.saving import load, read_config


@torch.no_grad()
def alone(model: Any, prompt: list[int], count: int, end: int) -> list[int]:
    """The most likely tokens of the untouched model."""
    cache, unread, written = None, prompt, []
    while len(written) < count and (not written or written[-1] != end):
        out = model(torch.tensor([unread]), past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache, unread = out.past_key_values, [int(out.logits[0, -1].argmax())]
        written += unread
    return written


@torch.no_grad()
def main(given: dict[str, str]) -> None:
    folder, count = Path(given["model"]), int(given.get("tokens", 16))
    two = load(folder, "auto")
    model, tokenizer = pretrained.load(ModelConfig(name=read_config(folder).base, device="cpu"))
    model.eval()
    end: Any = tokenizer.eos_token_id
    lines = Path(given["cases"]).read_text().splitlines()
    texts = [*wordings("validation")["ordinary"], *(json.loads(line)["text"] for line in lines)]
    texts = texts[: int(given["most"])]
    largest, same, until, computed = 0.0, 0, 0, 0
    for text in texts:
        prompt = tokenizer.encode(text, add_special_tokens=False)
        ids = torch.tensor([prompt])
        largest = max(largest, float((two.logits(ids) - model(ids).logits).abs().max()))
        made, plain = (two.continued(prompt, count, {end}), alone(model, prompt, count, end))
        computed += bool(made.computed)
        same += made.tokens == plain
        shared = max(0, made.computed[0].start - 1) if made.computed else len(plain)
        until += made.tokens[:shared] == plain[:shared]
    print(
        json.dumps(
            {
                "texts": len(texts),
                "largest difference of logits": largest,
                "a number is computed": computed,
                "the same continuation": same,
                "the same up to a computed number": until,
            }
        )
    )


if __name__ == "__main__":
    main(dict(word.split("=", 1) for word in sys.argv[1:]))
