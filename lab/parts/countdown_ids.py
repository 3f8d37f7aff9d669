"""Coupled position ids for numbers as people write them, with an answer that has one digit more than the longest number
of the question:

    tokens       <begin>  1  2  5 <add_integer>  9  7  =  0  2  2  2 <end>       125 + 97 = 0222
    countdown          0  3  2  1             0  2  1  5  4  3  2  1     0       offset 0

In the question, the id is 0 between runs, and 1 + the number of digits after it in its run. If the longest of these
runs has n digits, "=" has n + 2, and the digits of the answer have n + 1, n, n - 1 ... down to 0 for <end>. Ids of a
question depend on the whole question, but not on the answer. They are shifted like coupled ids (`coupled_ids`).

Shapes: B rows, T tokens of a row.
"""

from typing import Any

import torch

from lab.config.parts import Parts
from lab.config.schema import check_no_products, chosen
from lab.parts.coupled_ids import CircleConfig, CircleIds, check_through_point
from lab.parts.token_facts import TokenFacts, answered, longest_runs, problem_of, written_before

_BY_A_DIGIT = "multiply_easy_integer"


class CountdownIdsConfig(CircleConfig, kind="countdown_ids"):
    """Coupled ids for numbers as people write them; the places of an answer are counted down, starting one place above
    the question's highest (needs format.reverse=none and format.carry_place)."""

    ONES_FIRST = True

    def check(self, run: Any) -> None:
        check_through_point(self, run, "none")
        check_counts_down(run, "parts.countdown_ids")

    def build(self, model: Any, others: Parts) -> "CountdownIds":
        return CountdownIds(self)


def check_counts_down(run: Any, key: str) -> None:
    """Raises ValueError, for the part of the config's `key`, if the places of answers cannot be counted down."""
    by_a_digit = [_BY_A_DIGIT] if run.data.factor_digits == 1 else []
    check_no_products([item for item in chosen(run.data.tasks) if item.key not in by_a_digit], key)
    if run.format.reverse != "none" or not run.format.carry_place:
        what = f"{key} counts down to the ones digit, from the place of a last carry"
        raise ValueError(f"{what}: use format.reverse=none and format.carry_place=true")


class CountdownIds(CircleIds):
    def ids(self, ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
        return countdown(ids_BT, facts)

    def spans(self, ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
        # three ids more than the longest run has digits: between runs, for the answer's first digit, and for "="
        return longest_runs(ids_BT, facts, asked=True) + 3


def countdown(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """The ids (B, T) before they are shifted."""
    after_BT = written_before(ids_BT.flip(-1), facts).flip(-1)
    longest_BT = longest_runs(ids_BT, facts, asked=True).gather(1, problem_of(ids_BT, facts))
    left_BT = longest_BT + 2 - written_before(ids_BT, facts) - facts.has_place[ids_BT].long()
    return torch.where(answered(ids_BT, facts), left_BT.clamp(min=0), after_BT + facts.has_place[ids_BT])
