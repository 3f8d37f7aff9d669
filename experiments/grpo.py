"""Can a pretrained model improve at a task from rewards alone (GRPO, Shao et al. 2024)? No answer is ever shown to it.

    python experiments/grpo.py [task=max_integer] [digits=3,4] [steps=10] [seeds=0] [n=60] [output=checkpoints]
                               [publish=true]

SmolLM2-135M-Instruct gets adapters and is trained by TRL's GRPOTrainer: in each step it answers four problems eight
times each, and answers that earn more than the mean of their eight become more likely. An answer earns 1 if it is right
(lab.rewards.nupa), plus its share of right digits (lab.rewards.nupa_digits), so a half-right answer earns something,
too.

Before and after training, the model is asked `n` test problems of each length, with greedy decoding: of the lengths
that were trained on, and of as many longer lengths. Lengths that the lab never tests (up to 4 digits for most easy
tasks) are left out, because all their problems belong to the training split. Both models are compared problem by
problem (McNemar's exact test). Adapters are kept in `output`, also those of every tenth step, and `lab ask` opens them.
A finished seed is not trained again.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shared.arguments import own, whole_number, whole_numbers
from shared.publishing import take_results

import lab
from lab.drawing.tables import Table, percent, points, probability
from lab.errors import ConfigError, exit_cleanly
from lab.numbers.paired import Difference
from lab.numbers.tasks import task

ROOT = Path(__file__).parents[1]
MODEL = "smollm2-135m-instruct"
PROBLEMS, ANSWERS = 4, 8
"""Problems per step, and answers to each problem."""


class Job(NamedTuple):
    task: str = "max_integer"
    digits: tuple[int, int] = (3, 4)
    steps: int = 10
    n: int = 60


def train(job: Job, seed: int, folder: Path) -> None:
    """Writes the trained adapters into `folder`, with what every step earned in rewards.json."""
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    from lab import rewards
    from lab.config.finetuning import LoraConfig
    from lab.config.schema import ModelConfig
    from lab.models import adapters, pretrained

    model, tokenizer = pretrained.load(ModelConfig(name=MODEL))
    settings = GRPOConfig(
        output_dir=str(folder), max_steps=job.steps, learning_rate=5e-4, lr_scheduler_type="constant", beta=0,
        per_device_train_batch_size=PROBLEMS * ANSWERS, num_generations=ANSWERS, temperature=1,
        max_completion_length=job.digits[1] + 2, seed=seed, bf16=False, gradient_checkpointing=False,
        use_cpu=model.device.type == "cpu", logging_steps=1, save_steps=10, save_only_model=True, report_to="none",
        disable_tqdm=True,
    )  # fmt: skip
    problems = rewards.problems(job.task, job.digits, n=job.steps * PROBLEMS, seed=seed)
    tuned = adapters.attach(model, LoraConfig(rank=16), seed)
    earned_by: list[Any] = [rewards.nupa, rewards.nupa_digits]
    trainer = GRPOTrainer(tuned, earned_by, settings, problems, processing_class=tokenizer)
    began, clock = time.perf_counter(), time.process_time()
    trainer.train()
    tuned.save_pretrained(str(folder))
    description = folder / "adapter_config.json"
    # PEFT records the path of the base model on this machine
    description.write_text(json.dumps(json.loads(description.read_text()) | {"base_model_name_or_path": MODEL}))
    earned = [row["rewards/nupa/mean"] for row in trainer.state.log_history if "rewards/nupa/mean" in row]
    spent = {"seconds": time.perf_counter() - began, "processor_seconds": time.process_time() - clock}
    (folder / "rewards.json").write_text(json.dumps({"right": earned, **spent}))


def answers(model: str, job: Job) -> dict[int, list[bool]]:
    """Whether each test problem is answered right (strict reading), by length: trained lengths, and as many longer
    ones."""
    opened = lab.load(model, batch_size=64, dtype="bfloat16")
    low, high = job.digits
    lengths = [length for length in range(low, 2 * high - low + 2) if length in task(job.task).tested_lengths]
    found = {length: lab.evaluate(opened, lab.problems(job.task, length, job.n)).samples for length in lengths}
    return {length: [sample.reading.exact_match for sample in samples] for length, samples in found.items()}


def compared(job: Job, before: dict[int, list[bool]], after: dict[int, list[bool]]) -> dict[str, Difference]:
    """The two models on the lengths that were trained on, and on those beyond."""
    parts = {
        "trained": [length for length in before if length <= job.digits[1]],
        "beyond": [length for length in before if length > job.digits[1]],
    }
    return {
        f"{lengths[0]}-{lengths[-1]}, {name}": Difference.of(
            [right for length in lengths for right in before[length]],
            [right for length in lengths for right in after[length]],
        )
        for name, lengths in parts.items()
        if lengths
    }


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    results, rest = take_results(arguments, ROOT / "experiments" / "results")
    given = own(rest, "task", "digits", "steps", "n", "seeds", "output")
    digits = whole_numbers(given, "digits", "3,4")
    if len(digits) != 2:
        raise ConfigError(f"digits={given['digits']}: should be the shortest and the longest, such as digits=3,4")
    low, high = digits
    job = Job(
        given.get("task", "max_integer"), (low, high), whole_number(given, "steps", 10), whole_number(given, "n", 60)
    )
    before = answers(MODEL, job)
    rows = []
    for seed in whole_numbers(given, "seeds", "0"):
        folder = Path(given.get("output", "checkpoints")) / f"grpo_{job.task}_{low}-{high}_{job.steps}_{seed}"
        if not (folder / "rewards.json").is_file():
            train(job, seed, folder)
        spent = json.loads((folder / "rewards.json").read_text())
        for name, found in compared(job, before, answers(str(folder), job)).items():
            shares = percent(found.first), percent(found.second), points(found.estimate), probability(found.p)
            minutes = f"{spent['processor_seconds'] / 60:.1f}"
            rows.append((str(seed), name, str(found.n), *shares, minutes))
    title = f"{MODEL} on {job.task} before and after {job.steps} steps of GRPO, test problems, exact match in percent"
    columns = ("seed", "digits", "n", "before", "after", "difference", "p", "processor minutes of training")
    results.show(Table(title, columns, rows, names=2), "grpo")


if __name__ == "__main__":
    main(sys.argv[1:])
