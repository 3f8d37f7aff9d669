"""Writes the training data of a fine-tuning as text: each row is a prompt and the completion that is learned.

train.jsonl         a row for each sample, in the order of training; TRL, axolotl and LLaMA-Factory read it
dataset_info.json   tells LLaMA-Factory which columns train.jsonl has
README.md           the card: what the dataset is, and how each of these programs reads it
"""

import json
from pathlib import Path

from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.finetuning import FinetuneConfig
from lab.config.loading import dump
from lab.text import formats
from lab.text.examples import plain
from lab.tune.problem_sets import Selection, draw


def write(config: FinetuneConfig, folder: Path, name: str) -> int:
    """Writes the training data of a config into a folder, as a dataset of this name; returns how many samples it has.

    The lab trains on the same texts in the same order. Raises TaskError if no problem fits the window of the rules, and
    ModelError if the tokenizer, which is needed to count tokens, is not available.
    """
    batch_size = config.training.batch_size
    wording = formats.taught(formats.tuned(config.format, config.data), config.data)
    tokenizer = _tokenizer(config) if wording.window else None
    samples = config.training.max_steps * batch_size
    drawn = draw(Selection.of(config), "train", samples, tokenizer, wording, batch_size)
    with (folder / "train.jsonl").open("w", encoding="utf-8") as file:
        for item in map(drawn.example, drawn.order):
            file.write(json.dumps({"prompt": plain(item.prompt), "completion": item.completion}) + "\n")
    columns = {"prompt": "prompt", "response": "completion"}
    about = {name: {"file_name": "train.jsonl", "columns": columns}}
    (folder / "dataset_info.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    card = Path(__file__).with_name("card.md").read_text(encoding="utf-8")
    facts = {"count": len(drawn.order), "data": dump(config.data).rstrip(), "seed": config.seed, "name": name}
    (folder / "README.md").write_text(card.format(**facts), encoding="utf-8")
    return len(drawn.order)


def _tokenizer(config: FinetuneConfig) -> PreTrainedTokenizerBase:
    from lab.models import swaps  # imports torch, which only a window needs

    return swaps.load(config.model, config.swap)[1]
