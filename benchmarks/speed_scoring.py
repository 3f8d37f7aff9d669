"""Test problems scored per second, compared with the obvious loop over `generate`.

    python -m benchmarks.speed_scoring [problems per range] [run directory of a tuned model]

The baseline takes the problems unsorted, in left-padded batches of 64, with one fixed budget: twice the digits of the
longest problem in the test, as in the released code. Both answer the same problems, each with a model of its own,
because the lab's engine changes what attention is computed with.
"""

import random
import sys
import time
import warnings
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from lab.benchmarks.nupa.problems import pick_problems
from lab.benchmarks.nupa.scoring import Nupa
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.engines.local import LocalEngine
from lab.engines.plain import PlainEngine
from lab.errors import exit_cleanly
from lab.models import adapters, pretrained
from lab.numbers.sampling import task_of
from lab.text.answers import extract

CONFIG = Path(__file__).parents[1] / "configs" / "smollm2_lora.yaml"
BATCH = 64


@exit_cleanly
def main() -> None:
    warnings.simplefilter("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    config = load(FinetuneConfig, CONFIG, [])
    per_range = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    run = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    (model, tokenizer), (stock, _) = loaded(config, run), loaded(config, run)
    problems = pick_problems(config.test_cells, config.seed, per_range)
    engine = LocalEngine(model, tokenizer, config.evaluation.batch_size)
    asked = Nupa(problems).requests(engine.count_tokens)
    order = random.Random(0).sample(range(len(asked)), len(asked))

    began = time.perf_counter()
    found = {i: done.text for batch in engine.generate(asked) for i, done in batch.items()}
    ours = len(asked) / (time.perf_counter() - began)
    budget = 2 * max(problem.length for problem in problems)
    began = time.perf_counter()
    unsorted = [asked[i]._replace(max_tokens=budget) for i in order]
    obvious = PlainEngine(stock, tokenizer, BATCH).generate(unsorted)
    texts = [done.text for batch in obvious for done in batch.values()]
    plain = len(asked) / (time.perf_counter() - began)
    kinds = [task_of(problem).answer for problem in problems]
    same = sum(
        extract(found[i], kinds[i], "loose") == extract(text, kinds[i], "loose")
        for i, text in zip(order, texts, strict=True)
    )
    print(f"problems/s: lab {ours:.1f}, generate over unsorted batches {plain:.1f}, ratio {ours / plain:.1f}")
    which = "tuned" if run else "untuned"
    print(f"the same answer for {same} of {len(asked)} ({which} model; the baseline's budget is {budget} tokens)")


def loaded(config: FinetuneConfig, run: Path | None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The config's model, as `run` tuned it if given, and its tokenizer."""
    model, tokenizer = pretrained.load(config.model)
    if run is not None:
        model = adapters.for_inference(adapters.load(model, run / "model"), quantized=False)
    return model, tokenizer


if __name__ == "__main__":
    main()
