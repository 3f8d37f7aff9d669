"""Writes what a fine-tuning trains on as a dataset of text: a row is a prompt and the completion that is learned.

train.jsonl         a row for each sample, in the order of training; TRL, axolotl and LLaMA-Factory read it
dataset_info.json   tells LLaMA-Factory which columns it has
README.md           the card: what the dataset is, and how each of these programs reads it
"""

import json
from pathlib import Path

from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.finetuning import FinetuneConfig
from lab.config.loading import dump
from lab.text import formats
from lab.text.templates import taught
from lab.training.problem_sets import Selection, draw


def write(config: FinetuneConfig, folder: Path) -> int:
    """Writes the training data of a config into a folder, and returns how many samples it has.

    The lab trains on the same texts in the same order. Raises TaskError if no problem fits the window of the rules, and
    ModelError if the tokenizer, which is needed to count tokens, is not available.
    """
    batch_size = config.training.batch_size
    wording = taught(formats.tuned(config.format, config.data), config.data.templates)
    tokenizer = _tokenizer(config) if wording.window else None
    samples = config.training.max_steps * batch_size
    drawn = draw(Selection.of(config), "train", samples, tokenizer, wording, batch_size)
    with (folder / "train.jsonl").open("w", encoding="utf-8") as file:
        for item in map(drawn.example, drawn.order):
            file.write(json.dumps({"prompt": item.prompt, "completion": item.completion}) + "\n")
    columns = {"prompt": "prompt", "response": "completion"}
    about = {folder.name: {"file_name": "train.jsonl", "columns": columns}}
    (folder / "dataset_info.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    card = CARD.format(count=len(drawn.order), data=dump(config.data).rstrip(), seed=config.seed, name=folder.name)
    (folder / "README.md").write_text(card, encoding="utf-8")
    return len(drawn.order)


def _tokenizer(config: FinetuneConfig) -> PreTrainedTokenizerBase:
    from lab.models import swaps  # imports torch, which only a window needs

    return swaps.load(config.model, config.swap)[1]


CARD = """\
---
license: apache-2.0
language: [en]
task_categories: [text-generation]
configs:
- config_name: default
  data_files: train.jsonl
---
# {name}: {count} problems of number understanding to train on

Made by the number lab with exact arithmetic, from its training split: no test problem of the lab is among them. A
completion begins with a space; the trainer adds the end-of-sequence token. The rows are in the order in which the lab
trains on them.

```python
from datasets import load_dataset
from trl import SFTTrainer

SFTTrainer("HuggingFaceTB/SmolLM2-135M-Instruct", train_dataset=load_dataset("{name}", split="train")).train()
```

LLaMA-Factory: `dataset_dir: {name}`, `dataset: {name}`, `template: empty`. axolotl:

```yaml
datasets:
  - path: {name}/train.jsonl
    ds_type: json
    type:
      field_instruction: prompt
      field_output: completion
      format: "{{instruction}}"
      no_input_format: "{{instruction}}"
```

## What they are

The section `data` of the config; the seed is {seed}.

```yaml
{data}
```
"""
