"""Does a small model from scratch follow a rule that it never saw?

    python -m experiments.unseen_rules [config keys, such as name=unseen_1 seed=1 training.max_steps=600]

The 48 rules of one family differ in up to four places of their text: what stands for a digit that the first number
lacks (0, 5 or 9), what stands for a digit that the second number lacks, what is done with the two digits (the larger,
the smaller, the first, the second), and whether the digit or nine minus the digit is written. The prompt shows the
rule's text, and nothing else names it. Training has 40 rules. Eight are held out: all rules with one of four
combinations (HELD_OUT). Each of them can be made from a trained rule by editing one line.

Test problems of held-out rules are problems that no trained rule answers right, so a model that knows only trained
rules gets none of them right. A problem counts as right if each word of the whole bare trace and of the answer is the
likeliest after the right words before it, which is what greedy generation would write. Writes <name>.md to
checkpoints/results/; training and test take five minutes on a free core.
"""

import functools
import itertools
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from datasets import Dataset

from experiments.shared.publishing import beside_runs
from lab.command import read_config
from lab.config.pretraining import PretrainConfig
from lab.drawing.tables import Table, percent
from lab.errors import exit_cleanly
from lab.models import pretrained
from lab.numbers.philox import philox
from lab.numbers.statistics import Estimate, wilson
from lab.progress import quiet_libraries
from lab.rules.rulebook import Rule, read_rule
from lab.rules.traces.tracing import trace
from lab.scratch import llama as scratch
from lab.text.notation import BEGIN, END, EQUALS, PAD
from lab.text.rule_notation import ANSWER, DIGITS, ENDED, LINE, in_words
from lab.text.scratch_tokenizer import build_tokenizer
from lab.tune.from_scratch import train_from_scratch
from lab.tune.problem_sets import ProblemSet, TrainingSets
from lab.tune.sequences import SequenceCollator, sequence_loss
from lab.tune.trainer import Training

HERE = Path(__file__).parent
TEXT = """\
def combine(a, b):
    result = ""
    while a or b:
        digit = {picked}
        result = str({written}) + result
        a, b = a[:-1], b[:-1]
    return result
"""
ASSIGNED = ":="
"""Stands for "=" in the text of a rule, because a question ends in "="."""
ABSENT = (0, 5, 9)
PICKED = ("max({x}, {y})", "min({x}, {y})", "{x}", "{y}")
WRITTEN = ("digit", "9 - digit")
LONGEST = 4
TESTED = (4, 8, 16)
SETTINGS = (
    # the rule's text has no places, so some heads have to see all of it from everywhere
    *("parts.window=null", "parts.stick_breaking=null", "parts.locality.slope=[2, 2, 0, 0]"),
    *("training.batch_size=32", "training.micro_batch_size=32", "training.max_steps=4000"),
)
LARGER, SMALLER, FIRST, SECOND = PICKED
HELD_OUT = (
    ("a lacks", 5, LARGER, "9 - digit"),
    ("b lacks", 9, SMALLER, "digit"),
    ("a lacks", 9, FIRST, "digit"),
    ("b lacks", 0, SECOND, "9 - digit"),
)
"""Combinations that training never shows: what stands for a digit that a number lacks, what is done with the two
digits, and what is written."""


class Item(NamedTuple):
    """A problem: a rule and its operands."""

    rule: Rule
    a: str
    b: str

    def prompt(self) -> list[str]:
        shown = [ASSIGNED if word == EQUALS else word for word in in_words(f"{self.rule.text}\n", True)]
        return [BEGIN, *shown, *self.a[::-1], "<rule>", *self.b[::-1], EQUALS]

    def completion(self) -> list[str]:
        followed = trace(self.rule, [self.a, self.b], "bare")
        return [*in_words(f"{followed.text}\n", True), ENDED, ANSWER, *followed.value[::-1], END]


@exit_cleanly
def main(arguments: list[str]) -> None:
    results = beside_runs(arguments)
    keys = ["name=unseen_rules", *SETTINGS, *arguments]
    config = read_config(PretrainConfig, [str(HERE.parent / "configs" / "rules_scratch.yaml"), *keys], "unseen", "")
    quiet_libraries()
    seen, unseen = family()
    vocabulary = words_of(seen)
    tokenizer = build_tokenizer(vocabulary)
    ids = {word: i for i, word in enumerate(vocabulary)}
    model = scratch.build(config, vocabulary)
    collate = SequenceCollator(model, 1, config.seed)
    sets = TrainingSets(
        drawn(seen, config.training.max_steps * config.training.batch_size, config.seed, ids),
        drawn(seen, config.training.valid_problems, config.seed + 1000, ids),
    )
    with config.open_run() as run:
        run.record_environment(device="cpu")
        bfloat16 = pretrained.resolve_dtype(config.model) == torch.bfloat16
        settings, compiled = config.training, config.training.compile
        training = Training(
            model, tokenizer, settings, sets, config.seed, collate, sequence_loss, bfloat16=bfloat16, compile=compiled
        )
        train_from_scratch(training, run)
        rows = []
        for length in TESTED:
            old = [item for rule in seen for item in asked(rule, length, 5)]
            new = [item for rule in unseen for item in asked(rule, length, 25, instead=seen)]
            rows.append((str(length), *(percent(right(model, ids, items)) for items in (old, new))))
            print(*rows[-1], sep="\t", flush=True)
        columns = ("digits", f"{len(seen)} rules of the training", f"{len(unseen)} rules never seen")
        table = Table(f"{config.name}: whole traces and answers that are right, in %", columns, rows, names=1)
        run.write_text("table.md", table.markdown())
        results.file(f"{config.name}.md").write_text(table.markdown())


def family() -> tuple[list[Rule], list[Rule]]:
    """The rules of the training, and the held-out rules. They are read from files, like a user's own rules, so all can
    be followed."""
    seen, unseen = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (x, y, picked, written) in enumerate(itertools.product(ABSENT, ABSENT, PICKED, WRITTEN)):
            both = picked.format(x=f"int(a[-1:] or {x})", y=f"int(b[-1:] or {y})")
            path = Path(folder) / f"combine_{number}.py"
            path.write_text(TEXT.format(picked=both, written=written))
            rule = read_rule(path)
            held = {("a lacks", x, picked, written), ("b lacks", y, picked, written)} & set(HELD_OUT)
            # if only one number is used, the text does not say what stands for a missing digit of the other
            (unseen if held else seen)[rule.text] = rule
    return list(seen.values()), list(unseen.values())


def words_of(rules: Sequence[Rule]) -> list[str]:
    items = [item for rule in rules for item in asked(rule, 3, 5)]
    found = {word for item in items for word in (*item.prompt(), *item.completion())}
    first = [PAD, BEGIN, END, EQUALS, "<rule>", LINE, ENDED, ANSWER, *DIGITS]
    return [*first, *sorted(found - set(first))]


def numbers(purpose: str, index: int, longest: int, exactly: bool = False) -> tuple[str, str]:
    """Two numbers of up to `longest` digits; if `exactly`, at least one of them has that many."""
    generator = np.random.Generator(philox(purpose, index))
    lengths = [int(n) for n in generator.integers(1, longest + 1, 2)]
    if exactly:
        lengths[int(generator.integers(2))] = longest
    a, b = ("".join(map(str, generator.integers(0, 10, length))) for length in lengths)
    return a, b


def asked(rule: Rule, length: int, count: int, instead: Sequence[Rule] = ()) -> list[Item]:
    """Test problems of a rule that no rule in `instead` answers right."""
    found: list[Item] = []
    for index in itertools.count():
        a, b = numbers(f"test {rule.text} {length}", index, length, True)
        if all(answered(other, a, b) != answered(rule, a, b) for other in instead):
            found.append(Item(rule, a, b))
        if len(found) == count:
            return found
    raise AssertionError


def answered(rule: Rule, a: str, b: str) -> str:
    """The answer that the rule gives when Python runs it."""
    return _function(rule.text)(a, b)


@functools.cache
def _function(text: str) -> Callable[[str, str], str]:
    names: dict[str, Any] = {}
    exec(text, names)
    return names["combine"]


def drawn(rules: Sequence[Rule], size: int, seed: int, ids: dict[str, int]) -> ProblemSet:
    """Problems of training: a rule and two numbers for each index."""

    def look_up(asked: dict[str, list[int]]) -> dict[str, list]:
        items = []
        for index in asked["index"]:
            rule = rules[int(philox("rule", seed, index).random_raw()) % len(rules)]
            items.append(Item(rule, *numbers(f"train {seed}", index, LONGEST)))
        return {
            "index": asked["index"],
            "prompt_ids": [[ids[word] for word in item.prompt()] for item in items],
            "completion_ids": [[ids[word] for word in item.completion()] for item in items],
        }

    return ProblemSet(Dataset.from_dict({"index": np.arange(size)}).with_transform(look_up), {})


@torch.inference_mode()
def right(model: scratch.NumberLlama, ids: dict[str, int], items: Sequence[Item]) -> Estimate:
    """The share of items for which the model would write every word of the trace and the answer."""
    found = 0
    for item in items:
        prompt, completion = ([ids[word] for word in words] for words in (item.prompt(), item.completion()))
        row_T = torch.tensor([[*prompt, *completion]])
        said = model(row_T).logits[0].argmax(-1)[len(prompt) - 1 : -1]
        found += said.tolist() == completion
    return wilson(found, len(items))


if __name__ == "__main__":
    main(sys.argv[1:])
