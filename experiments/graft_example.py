"""Does the number in NUPA's instruction, "like 123", disturb a sum that is asked after it?

    python experiments/graft_example.py MODEL[,MODEL ...] [digits=100] [problems=24] [seed=0] [spacing=0]
                                        [table=graft_example] [publish=true] [output=FOLDER]

MODEL is a run of a row "as written" of experiments/graft.py, or its exported adapters. Reads `problems` sums of each
stratum (lab/numbers/additions.py) once with the right answer, so a sum counts as right if each digit is the likeliest
after the right ones before it. With spacing=3, numbers are evenly spaced. The number of the instruction stays as it is,
or is replaced (EXAMPLES). Shows how many sums are right, and at which places the wrong digits are; place 0 is that of
the ones. Measurements are kept in the output folder. Leaves a table.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from shared.arguments import own, whole_number
from shared.kept import Kept
from shared.publishing import take_results

from lab.config.schema import ModelConfig
from lab.drawing.tables import Entry, Table
from lab.errors import ConfigError, exit_cleanly
from lab.models import loading
from lab.models.swaps import swap_of
from lab.numbers.additions import STRATA, addition
from lab.numbers.sampling import Problem
from lab.numbers.tasks import task
from lab.progress import quiet_libraries
from lab.text.examples import encode
from lab.text.formats import TextFormat

ROOT = Path(__file__).parents[1]
NUMBER = "123"
EXAMPLES = {"like 123": NUMBER, "like 7": "7", "like this": "this"}
"""What the instruction then says, and what stands in it instead of NUMBER."""
PLACES = {"places 0-3": range(4), "places 4 and higher": range(4, 10**6)}


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, rest = take_results(arguments, ROOT / "experiments" / "results")
    names, rest = [one for one in rest if "=" not in one], [one for one in rest if "=" in one]
    given = own(rest, "digits", "problems", "seed", "spacing", "table", "output")
    if len(names) != 1:
        raise ConfigError("give models that add numbers as written, with commas between them")
    digits, problems = whole_number(given, "digits", 100), whole_number(given, "problems", 24)
    seed, spacing = whole_number(given, "seed", 0), whole_number(given, "spacing", 0)
    kept = Kept(Path(given.get("output", "checkpoints")) / "graft_example.json")
    lines: list[tuple[Entry, ...]] = []
    for name in names[0].split(","):
        reader = Reader(name, spacing)
        for label, example in EXAMPLES.items():
            wrong: list[list[int]] = []
            for stratum in STRATA:
                items = [addition(stratum, digits, seed, index) for index in range(problems)]
                key = f"{name} {label} {stratum} {digits}x{problems} {seed}" + f" spacing {spacing}" * bool(spacing)
                wrong += kept.once(key, lambda: [reader.wrong(item, example) for item in items], str)  # noqa: B023
            right = f"{sum(not places for places in wrong)} of {len(wrong)}"
            at = [sum(place in places for of_sum in wrong for place in of_sum) for places in PLACES.values()]
            lines.append((Path(name).name, label, right, *map(str, at)))
    columns = ("model", "in the instruction", "right sums", *(f"wrong digits, {group}" for group in PLACES))
    results.show(
        Table(f"Sums of {digits} digits after NUPA's instruction", columns, lines, 2),
        given.get("table", "graft_example"),
    )


class Reader:
    """A model that reads sums with their right answers. It is loaded when it is first needed."""

    def __init__(self, name: str, spacing: int) -> None:
        self.name, self.spacing = name, spacing
        self._loaded: Any = None

    @torch.inference_mode()
    def wrong(self, item: Problem, example: str) -> list[int]:
        """The places of wrong digits, with `example` instead of the instruction's number."""
        if self._loaded is None:
            model, tokenizer = loading.load(ModelConfig(name=self.name))
            loading.space_evenly(model, self.spacing)
            self._loaded = model, tokenizer, TextFormat(swap_of(model).format, [task("add_integer")])
        model, tokenizer, written = self._loaded
        asked = written.example(item)
        prompt, completion = encode(asked._replace(prompt=asked.prompt.replace(NUMBER, example, 1)), tokenizer)
        answer = completion[:-1]  # the end would finish the number, whose places are those of an unfinished one
        ids_1T = torch.tensor([[*prompt, *answer]], device=model.device)
        said_A = model(input_ids=ids_1T).logits[0, len(prompt) - 1 : -1].argmax(-1)
        return [len(answer) - 1 - at for at in (said_A != ids_1T[0, len(prompt) :]).nonzero().flatten().tolist()]


if __name__ == "__main__":
    main(sys.argv[1:])
