"""What the answers of SmolLM2-135M-Instruct are copies of: operands, or the example in the prompt's format hint.

python experiments/smollm2_copies.py [folder of the runs of smollm2_benchmarks.py]
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from lab.benchmarks.benchmark import Sample
from lab.numbers.statistics import wilson
from lab.runs import Run

EXAMPLES = ("123", "10.4", "7/13", "1.23e4")
"""Of the format hints (lab/text/prompts.py)."""


def share(text: str, found: Sequence[object], whole: Sequence[object]) -> None:
    estimate = wilson(len(found), len(whole))
    low, value, high = (100 * part for part in (estimate.low, estimate.value, estimate.high))
    print(f"  {text}: {len(found)} of {len(whole)}, {value:.1f} % ({low:.1f}-{high:.1f})")


def right(samples: Sequence[Sample], reading: str = "strict") -> list[Sample]:
    return [sample for sample in samples if sample[reading]["exact_match"]]


def main(folder: Path) -> None:
    nupa = {name: Run(folder / name).read("samples") for name in ("nupa_smollm2", "nupa_smollm2_5shot")}
    for name, samples in nupa.items():
        comparisons = [sample for sample in samples if sample["task"].startswith(("max", "min"))]
        others = [sample for sample in samples if sample not in comparisons]
        copies = [sample for sample in comparisons if sample["strict"]["given"] in (sample["a"], sample["b"])]
        ratios = [sample for sample in samples if (sample["task"], sample["representation"]) == ("truediv", "integer")]
        print(name)
        share("right, strict", right(samples), samples)
        share("right, loose", right(samples, "loose"), samples)
        missed = [sample for sample in samples if sample["strict"]["given"] is None]
        share("answers that only the loose reading finds", [s for s in missed if s["loose"]["given"]], samples)
        share("comparisons right", right(comparisons), comparisons)
        share("comparisons answered with an operand", copies, comparisons)
        share("right among those", right(copies), copies)
        share("other tasks right", right(others), others)
        share("truediv right", right(ratios), ratios)
        copied = [sample for sample in right(ratios) if sample["strict"]["given"] == f"{sample['a']}/{sample['b']}"]
        share("copies of a/b among all truediv", copied, ratios)

    chat = Run(folder / "nupa_smollm2_chat").read("samples")
    asked = {tuple(sample[key] for key in ("task", "representation", "a", "b")) for sample in chat}
    same = [s for s in nupa["nupa_smollm2"] if tuple(s[key] for key in ("task", "representation", "a", "b")) in asked]
    print("nupa_smollm2_chat")
    share("right, strict", right(chat), chat)
    share("right, loose", right(chat, "loose"), chat)
    share("right in the base setting, same problems", right(same), same)
    share("loose answer is an example of a hint", [s for s in chat if s["loose"]["given"] in EXAMPLES], chat)

    sums = Run(folder / "two_integers_smollm2").read("samples")
    print("two_integers_smollm2")
    share("loose answer is an operand", [s for s in sums if s["loose"]["given"] in (s["int1"], s["int2"])], sums)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "checkpoints")
