"""Problems scored per second, by the lab's engine and by vLLM, on the same problems and the same cores.

    python experiments/speed_vllm.py VLLM_PYTHON [rounds=3] [problems=12] [model=smollm2-135m-instruct]
                                     [output=checkpoints] [publish=true]

VLLM_PYTHON is the Python of vLLM's environment (`make vllm`: .venv-vllm/bin/python). In each round, `lab evaluate` asks
the model the same problems of NUPA (`problems` in each range, all tasks) in each of ENGINES, in bfloat16, in a process
of its own. Loading is not counted, and with the lab's engine neither is what happens before the first batch (tokenizing
all prompts, packing the weights: about a second). Shows problems/s with the range over rounds, the ratio to vLLM's, and
how many answers get the same verdict (right or wrong). Writes a table.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from shared.arguments import own_and_listed, whole_number
from shared.publishing import take_results

from lab.benchmarks.results import Sample, read_samples
from lab.drawing.tables import Table
from lab.errors import ConfigError, LabError, exit_cleanly
from lab.runs import Run

ROOT = Path(__file__).parents[1]
ENGINES = {
    "lab, batches of 128": "{{kind: local, batch_size: 128, model: {{name: '{model}', dtype: bfloat16}}}}",
    "lab, batches of 512": "{{kind: local, batch_size: 512, model: {{name: '{model}', dtype: bfloat16}}}}",
    "vLLM, all at once": "{{kind: vllm, batch_size: 100000, model: '{model}', dtype: bfloat16, max_model_len: 1024}}",
}
"""The engines, each with its section of the config."""
BASELINE = "vLLM, all at once"


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    results, rest = take_results(arguments, ROOT / "experiments" / "results")
    given, pythons = own_and_listed(rest, "the Python of vLLM's environment", "rounds", "problems", "model", "output")
    rounds, problems = whole_number(given, "rounds", 3), whole_number(given, "problems", 12)
    if len(pythons) != 1 or not Path(pythons[0]).is_file():
        raise ConfigError(f"{', '.join(pythons)}: not a Python; `make vllm` makes .venv-vllm/bin/python")
    model, output = given.get("model", "smollm2-135m-instruct"), given.get("output", "checkpoints")
    answers: dict[str, list[list[Sample]]] = {name: [] for name in ENGINES}
    for number in range(rounds):
        for index, (name, engine) in enumerate(ENGINES.items()):
            python = pythons[0] if name.startswith("vLLM") else sys.executable
            run = f"speed_vllm_{index}_{number}"
            evaluate(python, engine.format(model=model), run, problems, output)
            # engines finish the problems in different orders
            answers[name].append(sorted(read_samples(Run(Path(output) / run)), key=lambda sample: sample.index))
    results.show(table(answers), "speed_vllm")


def evaluate(python: str, engine: str, name: str, problems: int, output: str) -> None:
    """Runs `lab evaluate` in the environment of a Python. Raises LabError if it fails."""
    changes = [f"engine={engine}", f"benchmark.problems_per_range={problems}", f"name={name}", f"output={output}"]
    command = [python, "-m", "lab.evaluate", str(ROOT / "configs" / "nupa_smollm2.yaml"), *changes, "overwrite=true"]
    # without OMP_NUM_THREADS, vLLM would serve with one thread
    settings = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(len(os.sched_getaffinity(0)))}
    for_vllm = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    done = subprocess.run(command, env=os.environ | settings | for_vllm, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{' '.join(command)} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")


def table(answers: dict[str, list[list[Sample]]]) -> Table:
    """A row for each engine."""
    speeds = {name: [speed(samples) for samples in rounds] for name, rounds in answers.items()}
    first = answers[BASELINE][0]
    rows = []
    for name, measured in speeds.items():
        ratios = [one / other for one, other in zip(measured, speeds[BASELINE], strict=True)]
        alike = sum(a.right == b.right for a, b in zip(answers[name][0], first, strict=True))
        right = sum(sample.right for sample in answers[name][0])
        rows.append((name, spread(measured), spread(ratios), f"{alike} of {len(first)}", str(right)))
    columns = ("engine", "problems/s", "times vLLM", "same verdict as vLLM", "right")
    title = f"{len(first)} problems of NUPA, {len(speeds[BASELINE])} rounds (least and most)"
    return Table(title, columns, rows, 1)


def speed(samples: Sequence[Sample]) -> float:
    return len(samples) / sum(sample.completion.seconds for sample in samples)


def spread(values: Sequence[float]) -> str:
    return f"{mean(values):.2f} ({min(values):.2f}-{max(values):.2f})"


if __name__ == "__main__":
    main(sys.argv[1:])
