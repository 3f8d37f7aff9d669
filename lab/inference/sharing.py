"""Divides questions between processes, each of which has a copy of the model; every process gets all answers."""

from collections.abc import Iterator, Sequence, Set

from lab import processes
from lab.inference.engine import GREEDY, BatchingEngine, Completion, Engine, Request, Sampling


def generate_together(
    engine: Engine, requests: Sequence[Request], sampling: Sampling = GREEDY, done: Set[int] = frozenset()
) -> Iterator[dict[int, Completion]]:
    """Like `engine.generate`, in every process, but the processes take turns at its batches.

    Batches and completions are the same as in a single process. In each round, every process computes one batch;
    successive batches have similar sizes, so that processes wait little for each other.
    """
    if not isinstance(engine, BatchingEngine) or processes.count() == 1:
        yield from engine.generate(requests, sampling, done)
        return
    left = [batch for batch in engine.batches(requests) if not done >= set(batch)]
    mine = processes.share(left)
    chosen = {index for batch in mine for index in batch} - done
    completions = engine.generate(requests, sampling, set(range(len(requests))) - chosen)
    for turn in range(-(-len(left) // processes.count())):
        wanted, found = set(mine[turn]) - done if turn < len(mine) else set(), {}
        while not found.keys() >= wanted:
            found |= next(completions)
        yield {index: completion for part in processes.gather(found) for index, completion in part.items()}
