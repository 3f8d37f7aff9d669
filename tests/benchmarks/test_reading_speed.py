"""A response of a megabyte is scored in under 50 ms, and in time in proportion to its length, by every benchmark."""

import pytest

from lab.benchmarks.nupa.scoring import Nupa
from lab.benchmarks.results import Sum
from lab.benchmarks.sums.carry_free import CarryFree
from lab.benchmarks.sums.two_integers import TwoIntegers
from lab.config.evaluation import CarryFreeConfig, TwoIntegersConfig
from lab.engines.engine import Completion
from lab.numbers.sampling import Cell, problem
from lab.numbers.tasks import TASKS
from lab.text.wording import wording_of
from tests.text.linear import assert_linear

pytestmark = pytest.mark.slow

OPERANDS = Sum("123456789012345678901234567890", "987654321098765432109876543210")


def sums(benchmark):
    benchmark.problems = [OPERANDS]
    return benchmark


def nupa(task, setting):
    return Nupa([problem(Cell(TASKS[task], 5), "test", 0, 0)], wording_of(setting))


BENCHMARKS = {
    "two_integers": sums(TwoIntegers(TwoIntegersConfig(problems=1), seed=0)),
    "carry_free": sums(CarryFree(CarryFreeConfig(lengths=(2, 2), problems_per_length=1), seed=0)),
    **{
        f"{task}, {setting}": nupa(task, setting)
        for task in ("add_integer", "add_float", "add_fraction", "add_scientific")
        for setting in ("base", "chat", "api")
    },
}
ATOMS = ("1", "7", "1,", "1.", "1 ", "-", "(", " ", r"\boxed{", "{", "}", "x", "=", "It is 12 + 30. ")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_megabyte_of_anything_is_scored_in_under_fifty_milliseconds(name):
    for atom in ATOMS:
        assert_linear(lambda text: BENCHMARKS[name].score(0, Completion(text, 1, 1, 0.0, "stop")), atom)
