"""How many words the rules write: the longest of three test questions at the last length of each range.

python -m experiments.nupa.words
"""

from experiments.nupa.rules import TASKS, worked
from lab.numbers.sampling import Cell, distinct_problems
from lab.numbers.tasks import TASKS as ALL


def words(task: str, length: int, count: int = 3) -> int:
    """The most words for `count` test questions of this length; each line and the answer end in one more."""
    found = distinct_problems(Cell(ALL[task], length), "test", 0, count)
    return max(sum(len(line.words) + 1 for _, line in worked(item).lines) for item in found)


def main() -> None:
    print("| task | S | M | L | XL |\n|---|---:|---:|---:|---:|")
    for task in (name for name in ALL if name in TASKS):
        counts = [words(task, lengths[-1]) for lengths in ALL[task].difficulty.ranges.values()]
        print(f"| {task} | {' | '.join(f'{count:,}' for count in counts)} |")


if __name__ == "__main__":
    main()
