"""Draws what a grafted model sees each time it writes a digit of a sum (lab/parts/coupled.py).

    python -m experiments.graft_sight

Each row is one forward pass: the text so far, with hidden digits and words in light grey, and the digit that is written
next. The model's own functions decide what is visible.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.shared.arguments import own
from experiments.shared.publishing import beside_runs
from lab.drawing.figures import COLORS, figure_at
from lab.errors import exit_cleanly
from lab.parts.coupled import HIDDEN, hide
from lab.parts.same_place import pairs
from lab.text.places import row_spots

WINDOW = 1
PROMPT = ["What", " is", " ", *"4321", " plus", " ", *"98", "?", " It", " is", " "]
ANSWER = [*"9144"]
"""4321 + 98 = 4419, ones digit first."""
PLACES = ("ones", "tens", "hundreds", "thousands")


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    results = beside_runs(arguments)
    own(arguments)
    draw(results.file("graft_sight.png"))


def draw(path: Path) -> None:
    wide = sum(map(len, [*PROMPT, *ANSWER]))
    with figure_at(path, figsize=(8.4, 2.2)) as figure:
        axes = figure.subplots()
        for row, (place, written) in enumerate(zip(PLACES, ANSWER, strict=True)):
            text = [*PROMPT, *ANSWER[:row]]
            at, y = 0, -row
            for word, visible in zip(text, sight(text), strict=True):
                digit = word.isdigit()
                color = "#cccccc" if not visible else COLORS[0] if digit else "#444444"
                weight = "bold" if digit and visible else "normal"
                for letter in word:
                    axes.text(at, y, letter, family="monospace", fontsize=15, color=color, weight=weight, ha="center")
                    at += 1
            axes.text(at, y, written, family="monospace", fontsize=15, color=COLORS[3], weight="bold", ha="center")
            axes.text(wide + 1.5, y, f"writes the {place} digit", color="#666666")
        axes.set(xlim=(-1, wide + 11), ylim=(-len(ANSWER) + 0.4, 0.9))
        axes.axis("off")


def sight(words: Sequence[str]) -> list[bool]:
    """For each token, whether the last one sees it."""
    spots = row_spots(words, 1, ordinary=True)
    return (hide(pairs(spots, WINDOW), spots, "last")[0, 0] != HIDDEN).tolist()


if __name__ == "__main__":
    main(sys.argv[1:])
