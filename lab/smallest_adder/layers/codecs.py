"""What `encode` and `decode` may do: write digits down and read them, not add them. Here they become tables."""

import numpy as np

from lab.smallest_adder.codecs import NotCopied, Reading, Writing, neighbours, reach
from lab.smallest_adder.contract import LARGEST_VOCABULARY, LONGEST_OUTPUT, LONGEST_PROMPT
from lab.smallest_adder.trial import Objection, Trial, Unusable


def interface(trial: Trial) -> str:
    """Stops what is no submission: exports that are missing or too large, no module.

    The challenge's own bounds. A module with metadata beside it is a module too.
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
    """Stops prompts beyond 35 tokens, outside the vocabulary, of a length that tells something, or out of memory.

    Padded numbers always have the same length, and the same digits the same tokens.
    """
    prompts = trial.encode(trial.practice)
    for (a, b), prompt in zip(trial.practice, prompts, strict=True):
        if not 1 <= len(prompt) <= LONGEST_PROMPT:
            raise Unusable(f"encode({a}, {b}) has {len(prompt)} tokens; 1 to {LONGEST_PROMPT}")
        if any(not 0 <= token < trial.vocabulary for token in prompt):
            raise Unusable(f"encode({a}, {b}) has tokens outside 0 to {trial.vocabulary - 1}")
        if len(prompt) != len(prompts[0]):
            raise Unusable(f"encode({a}, {b}) has {len(prompt)} tokens, others {len(prompts[0])}: pad the numbers")
    if trial.encode(trial.practice[::-1])[::-1] != prompts:
        raise Unusable("the same operands, encoded again in another order, gave other tokens")
    trial.prompts = np.array(prompts, dtype=np.int64)
    return f"{trial.prompts.shape[1]} tokens, all below {trial.vocabulary}"


def encode_copies(trial: Trial) -> str:
    """Stops sums and carries in the prompt: each token is a one-to-one code of at most two digits.

    Digits are changed one by one, and a token may change with two of them at most, on sums of nines too, where a carry
    would run through all places. Copies of digits, in any order and code, are such tokens. A table of them writes the
    prompts of the problems that count.
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


def decode_honesty(trial: Trial) -> str:
    """Stops arithmetic left to decode, and sums that reach it by another way than tokens.

    Generated tokens are changed one by one: each decimal place of the answer may depend on one of them, and is a
    function of it. Reading digits in any order and code is, up to a stop token too. A table of that reads what counts.
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
