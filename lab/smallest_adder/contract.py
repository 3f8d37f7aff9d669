"""What the challenge asks. A submission is one Python file with five exports:

    build_model()     a torch.nn.Module with its weights, or (module, metadata)
    encode(a, b)      the prompt, a list of at most 35 token ids
    decode(tokens)    the sum, an int, read from the MAX_OUTPUT_LEN generated ids
    VOCAB_SIZE        an int, at most 256
    MAX_OUTPUT_LEN    an int, at most 30

The verifier judges what the module of build_model() computes: one pass over one sequence, recorded as a graph.
These bounds hold in addition to the challenge's rules (self-attention, causal, 99 % right):

    numbers in the code      at most LITERALS different ones, besides familiar ones such as 0, 1 and powers of ten.
                             Sizes that are not sizes of a parameter count as well. A constant tensor counts as the
                             numbers that describe it, or as the pieces that it is made of, whichever are fewer
    attention                carries at most CARRIED numbers to each position, in all layers together CARRIED_IN_ALL;
                             both bounds grow by one for every four parameters that answers depend on
    operations               at most STEPS of arithmetic before any attention, and at most STEPS after the attention of
                             each layer
    activations and norms    at most ACTIVATIONS in a row after attention, summed over the layers; the bound grows by
                             one for every four parameters that answers depend on
    between positions        only attention passes information, both before and after it
    other precision          at least the share RIGHT_IN_OTHER_PRECISION of the right answers stays right if a float32
                             model is computed in float64 (a float64 model in float32), and if the numbers in the code
                             are wrong in their fifth digit

Self-attention is a softmax over the tokens, or exponentials that are divided by their sum (a key of score zero may be
among them, as one more key); linear attention counts if it is written with its weights (queries times keys, then times
values), not as a running sum. Each query meets all tokens, under a mask; loops in which the keys grow are not
recognised. Operations that choose among learned values (the largest few, the place of a maximum) are not smooth and not
allowed, so mixtures that keep only the best experts are not submissions.

The problems are ten edge cases and pairs drawn uniformly. This file only reads a submission's source, and runs none of
it.
"""

import ast
import random
import symtable
from pathlib import Path

from lab.errors import TaskError

EXPORTS = ("build_model", "encode", "decode", "VOCAB_SIZE", "MAX_OUTPUT_LEN")
LARGEST_VOCABULARY = 256
LONGEST_OUTPUT = 30
LONGEST_PROMPT = 35
DIGITS = 10

LITERALS = 10
CARRIED = 2
CARRIED_IN_ALL = 4
PARAMETERS_FOR_ONE_MORE = 4
ACTIVATIONS = 8
STEPS = 64
RIGHT_IN_OTHER_PRECISION = 0.9
QUALIFYING = 0.99

CATEGORIES = ("trained", "hand-coded")

LARGEST_SOURCE = 1 << 20
"""The largest size in bytes; a larger file is not even parsed."""

Pair = tuple[int, int]
LARGEST = 10**DIGITS - 1
PUBLIC_SEED = 2025
EDGE_CASES: tuple[Pair, ...] = (
    *((0, 0), (0, 1), (1, 0), (0, LARGEST), (LARGEST, 0), (LARGEST, 1), (1, LARGEST), (LARGEST, LARGEST)),
    *((5555555555, 4444444445), (1234567890, 9876543210)),
)


def problems(seed: int, count: int = 10_000) -> list[Pair]:
    """The 10 edge cases and `count` pairs drawn uniformly."""
    drawn = random.Random(seed)
    return [*EDGE_CASES, *((drawn.randint(0, LARGEST), drawn.randint(0, LARGEST)) for _ in range(count))]


def practice(seed: int, count: int) -> list[Pair]:
    """Practice problems, which do not count: uniform pairs, pairs in which every column adds up to 9 (a carry would run
    through all of them), and short numbers."""
    drawn = random.Random(f"practice {seed}")
    pairs = [(drawn.randint(0, LARGEST), drawn.randint(0, LARGEST)) for _ in range(count)]
    for length in (*range(1, DIGITS + 1), *[DIGITS] * 14):
        a, b = drawn.randrange(10**length), drawn.randrange(10**length)
        pairs += [(a, b), (a, LARGEST - a)]
    return pairs


def read_submission(path: Path) -> str:
    """The source of a submission that offers the five exports.

    Raises TaskError, in one line, if there is no such file, if it is not Python, or if it lacks exports.
    """
    if not path.is_file():
        raise TaskError(f"{path}: there is no such file")
    if path.stat().st_size > LARGEST_SOURCE:
        raise TaskError(f"{path}: {path.stat().st_size:,} bytes; a submission has at most {LARGEST_SOURCE:,}")
    try:
        source = path.read_text(encoding="utf-8")
        symbols = symtable.symtable(source, "<unknown>", "exec").get_symbols()
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise TaskError(f"{path}: not a Python file: {' '.join(str(error).split())}") from error
    names = {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
    missing = [name for name in EXPORTS if name not in names]
    if missing and {"build_model", "add"} <= names:
        raise TaskError(
            f"{path}: an AdderBoard file (build_model, add), which lacks {', '.join(missing)}: take the greedy loop "
            "out of add(model, a, b), make what it does before the loop encode(a, b), returning a list of ids, and "
            "what it does after it decode(tokens), returning an int; set VOCAB_SIZE and MAX_OUTPUT_LEN"
        )
    if missing:
        raise TaskError(f"{path}: lacks {', '.join(missing)}; a submission exports {', '.join(EXPORTS)}")
    return source


def category(source: str) -> str:
    """The category that a top-level CATEGORY = "trained" or a line "Category: trained" of the docstring states;
    "unstated" if neither does."""
    said = _said(source, "category")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            said += [str(node.value.value) for target in node.targets if ast.unparse(target) == "CATEGORY"]
    stated = said[-1].strip(" .").lower() if said else ""
    return stated if stated in CATEGORIES else "unstated"


def seeds(source: str) -> int | None:
    """The number of seeds of which the best was taken, from a line "Seeds: 40" of the docstring; None without one."""
    said = _said(source, "seeds")
    return int(said[-1]) if said and said[-1].isdecimal() and len(said[-1]) < 10 else None


def _said(source: str, name: str) -> list[str]:
    """What the lines "NAME: ..." of the docstring say."""
    lines = (ast.get_docstring(ast.parse(source)) or "").lower().splitlines()
    return [line.partition(":")[2].strip(" .") for line in lines if line.strip().startswith(f"{name}:")]
