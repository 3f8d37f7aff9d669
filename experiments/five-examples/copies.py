"""What SmolLM2-135M-Instruct copies in its answers: operands, or the example in the prompt's format hint.

    python -m experiments.five-examples.copies [FOLDER]

FOLDER is the folder with the runs of experiments/five-examples/run.py, checkpoints by default.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.shared.arguments import own
from lab.benchmarks.results import Sample, read_samples
from lab.errors import exit_cleanly
from lab.numbers.statistics import wilson
from lab.runs import Run

ROOT = Path(__file__).parents[2]
EXAMPLES = ("123", "10.4", "7/13", "1.23e4")
"""The examples in the format hints (lab/text/prompts.py)."""


def share(text: str, found: Sequence[object], whole: Sequence[object]) -> None:
    estimate = wilson(len(found), len(whole))
    low, value, high = (100 * part for part in (estimate.low, estimate.value, estimate.high))
    print(f"  {text}: {len(found)} of {len(whole)}, {value:.1f} % ({low:.1f}-{high:.1f})")


def right(samples: Sequence[Sample], reading: str = "strict") -> list[Sample]:
    return [sample for sample in samples if sample.readings[reading].exact_match]


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    own([part for part in arguments if "=" in part])
    folder = Path(arguments[0] if arguments else ROOT / "checkpoints")
    for name in ("nupa_smollm2", "nupa_smollm2_5shot", "nupa_smollm2_chat", "two_integers_smollm2"):
        Run(folder / name).check_finished()
    nupa = {name: read_samples(Run(folder / name)) for name in ("nupa_smollm2", "nupa_smollm2_5shot")}
    for name, samples in nupa.items():
        comparisons = [sample for sample in samples if sample.problem.task.startswith(("max", "min"))]
        others = [sample for sample in samples if sample not in comparisons]
        copies = [
            sample for sample in comparisons if sample.readings["strict"].given in (sample.problem.a, sample.problem.b)
        ]
        ratios = [
            sample
            for sample in samples
            if (sample.problem.task, sample.problem.representation) == ("truediv", "integer")
        ]
        print(name)
        share("right, strict", right(samples), samples)
        share("right, loose", right(samples, "loose"), samples)
        missed = [sample for sample in samples if sample.readings["strict"].given is None]
        share("answers that only the loose reading finds", [s for s in missed if s.readings["loose"].given], samples)
        share("comparisons right", right(comparisons), comparisons)
        share("comparisons answered with an operand", copies, comparisons)
        share("right among those", right(copies), copies)
        share("other tasks right", right(others), others)
        share("truediv right", right(ratios), ratios)
        copied = [
            sample
            for sample in right(ratios)
            if sample.readings["strict"].given == f"{sample.problem.a}/{sample.problem.b}"
        ]
        share("copies of a/b among all truediv", copied, ratios)

    chat = read_samples(Run(folder / "nupa_smollm2_chat"))
    asked = {sample.problem[:4] for sample in chat}
    same = [s for s in nupa["nupa_smollm2"] if s.problem[:4] in asked]
    print("nupa_smollm2_chat")
    share("right, strict", right(chat), chat)
    share("right, loose", right(chat, "loose"), chat)
    share("right in the base setting, same problems", right(same), same)
    share("loose answer is an example of a hint", [s for s in chat if s.readings["loose"].given in EXAMPLES], chat)

    sums = read_samples(Run(folder / "two_integers_smollm2"))
    print("two_integers_smollm2")
    share("loose answer is an operand", [s for s in sums if s.readings["loose"].given in s.question], sums)


if __name__ == "__main__":
    main(sys.argv[1:])
