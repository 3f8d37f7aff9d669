"""Which heads do the answers of tuned SmolLM2 depend on? Ablates each head while the model answers, and counts the
errors.

    python -m experiments.errors-from-heads.run [seeds=0,1,2] [sums=60] [length=3] [output=checkpoints]
                                         [key=value ...]

Tunes SmolLM2-135M on sums of 1-4 digits by configs/smollm2_sums.yaml, once for each seed. Answers are written greedily,
token by token, with mean ablation at the tokens that predict digits, and classified as in `lab.evaluate`
(lab/numbers/taxonomy.py). The heads are those that `experiments/heads-that-line-up/run.py` and
`experiments/smollm2_carry.py` found on other sums: for a's digits, for b's digits, and for the carry. Controls are two
heads that look at digits but are not used, and three other heads of their layer. Other arguments go to `lab.finetune`.
Leaves a table in results/ beside the runs.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from experiments.shared.arguments import own_and_others, whole_number, whole_numbers
from experiments.shared.publishing import beside_runs
from experiments.shared.sums import of_one_length
from experiments.shared.training import trained
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.drawing.tables import Entry, Table, percent
from lab.errors import exit_cleanly
from lab.numbers.statistics import wilson
from lab.numbers.taxonomy import INTEGER, classify, unit_step
from lab.probing.addition.ablation import Group, mean_hooks
from lab.probing.addition.positions import Sums
from lab.probing.bridge import Hook, Subject, open_model
from lab.probing.components import Component
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "smollm2_sums.yaml"
BATCH = 16
HEADS: dict[str, Group] = {
    "nothing": (),
    "L20H8 (a's digit)": (Component("head", 20, 8),),
    "L20H6 (b's digit)": (Component("head", 20, 6),),
    "L20H7 (brings carries about)": (Component("head", 20, 7),),
    "L21H2 and L17H5 (look, unused)": (Component("head", 21, 2), Component("head", 17, 5)),
    "L20H0 (control)": (Component("head", 20, 0),),
    "L20H1 (control)": (Component("head", 20, 1),),
    "L20H5 (control)": (Component("head", 20, 5),),
}
CLASSES = ("correct", "carry_1d", "sub_1d", "order_2d", "value_nd", "parse_error")


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, changes = own_and_others(arguments, "seeds", "sums", "length", "output")
    length = whole_number(given, "length", 3)
    numbers = of_one_length(length, whole_number(given, "sums", 60), stream=2)
    rows: list[tuple[Entry, ...]] = []
    for seed in whole_numbers(given, "seeds", "0,1,2"):
        own = [f"name=smollm2_sums_{seed}", f"seed={seed}", f"output={given.get('output', 'checkpoints')}"]
        run = trained(load(FinetuneConfig, CONFIG, [*changes, *own, "resume=true"]))
        rows += rows_of(str(seed), open_model(str(run)), numbers)
    asked = f"answers to {len(numbers)} sums of {length} digits, by class, with heads taken away"
    columns = ("seed", "without", *CLASSES, "off by one carry", "right, no carry (%)", "right, with carries (%)")
    results.show(Table(f"SmolLM2-135M tuned on sums: {asked}", columns, rows, 2), "smollm2_errors")


def rows_of(seed: str, subject: Subject, numbers: Sequence[tuple[int, int]]) -> list[tuple[Entry, ...]]:
    """A row for each group of heads that is taken away."""
    sums = subject.sums(numbers)
    carries = [int(sums.columns.carry[row].sum()) > 0 for row in range(len(sums))]
    rows: list[tuple[Entry, ...]] = []
    for label, group in HEADS.items():
        found = answers(subject, sums, mean_hooks(subject, sums, group, BATCH) if group else [])
        classes = [outcome(answer, a + b) for answer, (a, b) in zip(found, numbers, strict=True)]
        counts = Counter(classes)
        steps = sum(
            unit_step(answer, str(a + b))
            for answer, (a, b), kind in zip(found, numbers, classes, strict=True)
            if kind in ("carry_1d", "sub_1d")
        )
        right = [
            wilson(sum(kind == "correct" for kind, has in zip(classes, carries, strict=True) if has is wanted), n)
            if (n := carries.count(wanted))
            else None
            for wanted in (False, True)
        ]
        rows.append((seed, label, *(str(counts[kind]) for kind in CLASSES), str(steps), *map(percent, right)))
    return rows


@torch.inference_mode()
def answers(subject: Subject, sums: Sums, hooks: list[Hook]) -> list[str]:
    """Greedy answers: the tokens of the right answer are replaced, one after the other, by those of the model."""
    tokens_BT = sums.tokens_BT.clone()
    start, end = int(sums.equals_at_B[0]), int(sums.end_at_B[0])
    for place in range(start, end + 1):
        now = replace(sums, tokens_BT=tokens_BT)
        said_B = torch.cat(
            [
                subject.logits(now.part(slice(row, row + BATCH)), hooks)[:, place].argmax(-1).cpu()
                for row in range(0, len(sums), BATCH)
            ]
        )
        tokens_BT[:, place + 1] = said_B
    stop = int(sums.tokens_BT[0, end + 1])
    rows = [row[: row.index(stop)] if stop in row else row for row in tokens_BT[:, start + 1 :].tolist()]
    return ["".join(subject.writer.words(row)).strip() for row in rows]


def outcome(answer: str, truth: int) -> str:
    return classify(answer, str(truth)) if INTEGER.fullmatch(answer) else "parse_error"


if __name__ == "__main__":
    main(sys.argv[1:])
