"""From problems to answers. `encode` and `decode` may write and read digits, but not add: they become tables."""

import time

import numpy as np

from lab.smallest_adder.codecs import NotCopied, Reading, Writing, neighbours, reach
from lab.smallest_adder.contract import LARGEST_VOCABULARY, LONGEST_OUTPUT, LONGEST_PROMPT, QUALIFYING
from lab.smallest_adder.graph.program import written_after
from lab.smallest_adder.trial import Objection, Trial, Unusable


def interface(trial: Trial) -> str:
    """Stops files that are not submissions: exports that are missing or too large, no module.

    These are the challenge's own bounds. A module may come with metadata.
    """
    exports = trial.child.ask("load", source=trial.text)
    for name, able in zip(("build_model", "encode", "decode"), exports["callable"], strict=True):
        if not able:
            raise Unusable(f"{name} is not a function")
    largest = (("VOCAB_SIZE", LARGEST_VOCABULARY), ("MAX_OUTPUT_LEN", LONGEST_OUTPUT))
    for (name, most), size in zip(largest, exports["sizes"], strict=True):
        if type(size) is not int or not 1 <= size <= most:
            raise Unusable(f"{name} is {size if type(size) is int else 'not an int'}; an int from 1 to {most}")
    trial.vocabulary, trial.length = exports["sizes"]
    trial.child.ask("build")
    return f"VOCAB_SIZE {trial.vocabulary}, MAX_OUTPUT_LEN {trial.length}, a torch.nn.Module"


def encode_bounds(trial: Trial) -> str:
    """Stops prompts that have over 35 tokens, tokens outside the vocabulary, a length that depends on the numbers, or
    tokens that depend on earlier calls.

    Padded numbers always have the same length, and the same digits the same tokens.
    """
    prompts = trial.encode(trial.practice)
    for (a, b), prompt in zip(trial.practice, prompts, strict=True):
        if not 1 <= len(prompt) <= LONGEST_PROMPT:
            raise Unusable(f"encode({a}, {b}) has {len(prompt)} tokens; 1 to {LONGEST_PROMPT}")
        if any(not 0 <= token < trial.vocabulary for token in prompt):
            raise Unusable(f"encode({a}, {b}) has tokens outside 0 to {trial.vocabulary - 1}")
        if len(prompt) != len(prompts[0]):
            raise Unusable(f"encode({a}, {b}) has {len(prompt)} tokens, others have {len(prompts[0])}: pad the numbers")
    if trial.encode(trial.practice[::-1])[::-1] != prompts:
        raise Unusable("the same operands, encoded again in another order, gave other tokens")
    trial.prompts = np.array(prompts, dtype=np.int64)
    return f"{trial.prompts.shape[1]} tokens, all below {trial.vocabulary}"


def encode_copies(trial: Trial) -> str:
    """Stops sums and carries in the prompt: each token is a one-to-one code of at most two digits.

    Digits are changed one by one, and each token may change with at most two of them. Sums of nines are among the
    problems, because a carry would run through all their places. Copies of digits pass, in any order and code. A table
    of these tokens writes the prompts of the problems that count.
    """
    bases = trial.practice[-48:]
    changed = neighbours(bases)
    before, after = np.array(trial.encode(bases)), np.array(trial.encode([pair for *_, pair in changed]))
    pairs = [*trial.practice, *(pair for *_, pair in changed)]
    try:
        trial.writing = Writing.learned(pairs, np.concatenate([trial.prompts, after]), reach(before, changed, after))
    except NotCopied as error:
        raise Objection(str(error)) from error
    return f"each token copies at most two digits, on {len(pairs):,} pairs for practice"


def generation(trial: Trial) -> str:
    """Runs the practice problems through the greedy loop. Stops nothing by itself."""
    trial.outputs = written_after(trial.programs, trial.prompts, trial.length)
    return f"{trial.length} tokens for each of {len(trial.outputs):,} problems for practice"


def decode_honesty(trial: Trial) -> str:
    """Stops arithmetic that is left to decode, and sums that reach decode by other means than tokens.

    Generated tokens are changed one by one: each decimal place of the answer may depend on one of them, and must be a
    function of it. Reading digits passes, in any order and code, and also up to a stop token. A table of this function
    reads the answers that count.
    """
    answers = trial.decode(trial.outputs.tolist())
    trial.good = np.array([answer == total for answer, total in zip(answers, trial.sums.tolist(), strict=True)])
    if not trial.good.any():
        if all(type(answer) is str for answer in answers):
            raise Objection(f"decode {answers[0]}")
        return "no right answer to look at"
    try:
        trial.reading = Reading.learned(trial.outputs[trial.good], trial.decode, trial.seed)
    except NotCopied as error:
        raise Objection(str(error)) from error
    return "each decimal place is read from one generated token"


def accuracy(trial: Trial) -> str:
    """Stops models that cannot add: the challenge asks for 99 % of all problems, with every digit right."""
    start = time.perf_counter()
    if trial.writing is None:
        raise Objection("without prompts that copy digits there is nothing to count")
    prompts = trial.writing.of(trial.pairs)
    sums = np.array([a + b for a, b in trial.pairs])
    if trial.reading is not None:
        trial.answers = trial.reading.answers(trial.written(prompts, sums))
    trial.seconds = time.perf_counter() - start
    share = trial.right / len(trial.pairs)
    figure = f"{trial.right:,} of {len(trial.pairs):,} right ({share:.2%})"
    if share < QUALIFYING:
        raise Objection(f"{figure}; at least 99% is asked")
    return figure
