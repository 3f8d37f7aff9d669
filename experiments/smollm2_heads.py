"""Which heads of SmolLM2-135M line digits up, before and after fine-tuning on addition, and are they needed?

    python experiments/smollm2_heads.py [tuned=checkpoints/smollm2_direct] [sums=40] [length=3] [publish=true]

For the untouched and the tuned model, asked in the NUPA prompt: the heads that give the most attention from q_k to
digit k of either number (minus what another column's query gives it), and what is lost without them. They are
mean-ablated at the tokens that predict digits: each head, all of them together, and random heads of the same layers.
Leaves a table in results/ beside the runs, or in experiments/results/ with publish=true.
"""

# %%
import sys
from pathlib import Path

import numpy as np
from shared.arguments import own, whole_number
from shared.heads import random_groups
from shared.publishing import take_results

from lab.drawing.tables import Entry, Shown, Table
from lab.errors import exit_cleanly
from lab.numbers.additions import addition
from lab.numbers.statistics import Estimate
from lab.probing.bridge import Subject, open_model
from lab.probing.components import Component
from lab.probing.instruments.ablation import ablate
from lab.probing.instruments.alignment import alignment
from lab.probing.measured import Measured
from lab.progress import quiet_libraries

results, arguments = exit_cleanly(take_results)(sys.argv[1:], Path(__file__).parent / "results")
given = exit_cleanly(own)(arguments, "tuned", "sums", "length", "output")
MODELS = {"as it is": "smollm2-135m-instruct", "tuned": given.get("tuned", "checkpoints/smollm2_direct")}
SUMS, LENGTH = whole_number(given, "sums", 40), whole_number(given, "length", 3)
BATCH = 16
MOST = 2
"""The number of heads for each operand."""
quiet_libraries()


# %% Sums whose answers have as many digits as the numbers, so that tokens can be compared by position.
drawn = (addition("uniform", LENGTH, 0, index) for index in range(10 * SUMS))
numbers = [(int(item.a), int(str(item.b))) for item in drawn if len(item.answer) == LENGTH][:SUMS]


def strongest(subject: Subject) -> dict[Component, str]:
    """The heads that look most at the digit to be added, and the number that each looks at."""
    found = alignment(subject, {LENGTH: subject.sums(numbers)}, batch_size=BATCH)
    heads: dict[Component, str] = {}
    for number in "ab":
        where = {"number": number, "offset": 0, "length": LENGTH}
        excess = np.nan_to_num(found.attention.at(**where).value - found.permuted.at(**where).value)
        for place in np.argsort(-excess, axis=None)[:MOST]:
            layer, head = divmod(int(place), subject.heads)
            looks = found.attention.at(layer=layer, head=head, **where)
            heads[Component("head", layer, head)] = f"{number}: {float(looks.value):.2f}"
    return heads


def cell(estimate: Measured) -> Entry:
    shown = Estimate(float(estimate.value), float(estimate.low), float(estimate.high), SUMS)
    return Shown(shown, "{:.0f} ({:.0f} to {:.0f})", 100)


# %% Alignment and ablation of both.
rows: list[tuple[Entry, ...]] = []
for label, name in MODELS.items():
    subject = open_model(name)
    heads = strongest(subject)
    together = tuple(sorted(heads, key=lambda one: (one.layer, one.head)))
    groups = [(head,) for head in heads] + [together, *random_groups(subject, together, 3, seed=0)]
    lost = ablate(subject, subject.sums(numbers), groups, batch_size=BATCH)
    intact = float(np.nanmean(lost.intact.value))
    looks = [*heads.values(), "all of these", *["random heads of their layers"] * (len(groups) - len(heads) - 1)]
    for group, what in zip(lost.exact.axes["group"], looks, strict=True):
        of_group = [cell(lost.column.at(group=group, column=column)) for column in range(LENGTH)]
        rows.append((label, f"{100 * intact:.0f}", group, what, *of_group, cell(lost.exact.at(group=group))))

# %% One table.
title = (
    f"SmolLM2-135M, {len(numbers)} sums of {LENGTH} digits: change in digits right, and in exact match (points, 95 %)"
)
columns = ("model", "digits right", "without", "looks at", *(f"column {k}" for k in range(LENGTH)), "exact match")
results.show(Table(title, columns, rows, 4), "smollm2_heads")
