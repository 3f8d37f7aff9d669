import pytest

from lab.benchmarks.length_curves.scoring import LengthCurves, unseen_problems
from lab.benchmarks.results import Reading, Sample
from lab.config.notation import FormatConfig, TokenizerConfig
from lab.engines.engine import Completion
from lab.numbers.sampling import Cell, Mixture, Problem
from lab.numbers.tasks import TASKS
from lab.text.digit_groups import groups
from lab.text.notation import Notation

ADD, MULTIPLY = TASKS["add_integer"], TASKS["multiply_hard_integer"]
PLAIN = Notation(TokenizerConfig(), FormatConfig(), [ADD])


def completion(text: str, reason: str = "stop") -> Completion:
    return Completion(text, 5, len(text.split()) + (reason == "stop"), 0.1, reason)


def scored(text: str, reason: str = "stop") -> Reading:
    item = Problem("add", "integer", "95", "12", "107", 2)
    return LengthCurves([item], PLAIN).score(0, completion(text, reason)).readings[""]


def test_an_answer_is_a_number_in_the_notation_that_ends():
    assert scored("1 0 7") == Reading("107", True, 1, 0)
    assert scored("1 1 7").digit_match == pytest.approx(2 / 3)
    assert scored("1 0 7", "length").exact_match is False
    assert scored("1 0 7", "length").digit_match == 1
    assert scored("1 0 7 7 7 7", "length").dlength == 3
    assert scored("1 . 7").given is None
    # a special token in the middle is not in the text, but it is no part of a number either
    swallowed = completion("1 0 7")._replace(completion_tokens=5)
    benchmark = LengthCurves([Problem("add", "integer", "95", "12", "107", 2)], PLAIN)
    assert benchmark.score(0, swallowed).readings[""].given is None


@pytest.mark.parametrize("kind", ["random", "aligned", "mixed"])
def test_the_budget_holds_every_answer_however_it_is_cut(kind):
    notation = Notation(
        TokenizerConfig(kind=kind, digits=3), FormatConfig(index_hints="both", largest_hint=64), [MULTIPLY]
    )
    problems = unseen_problems([Cell(MULTIPLY, n) for n in (3, 8, 20)], 0, 20)
    benchmark = LengthCurves(problems, notation)
    for item, request in zip(problems, benchmark.requests(), strict=True):
        one_by_one = 2 * len(groups(item.answer, "aligned", 1, "right"))
        assert request.max_tokens > one_by_one
        assert request.prompt.endswith(" =")


def test_a_question_is_written_once_however_often_it_is_asked(monkeypatch):
    written = []
    question = Notation.question
    monkeypatch.setattr(Notation, "question", lambda *given: written.append(given) or question(*given))
    benchmark = LengthCurves(unseen_problems([Cell(ADD, 4)], 0, 6), PLAIN)
    assert benchmark.requests() == benchmark.requests()
    assert len(written) == 6


def test_no_length_is_tested_with_problems_that_were_trained_on_where_that_can_be():
    for length in (3, 10, 20, 25):
        tested = {(item.a, item.b) for item in unseen_problems([Cell(ADD, length)], 0, 100)}
        trained = {(item.a, item.b) for item in Mixture([Cell(ADD, length)], "train", 0, 500)}
        assert not tested & trained
    notes = [LengthCurves(unseen_problems([Cell(ADD, n)], 0, 5), PLAIN, range(1, 9)).note for n in (2, 3, 30)]
    assert notes == ["no test split: problems of [2] digits may have been trained on", "", ""]


def test_figures_by_task_and_length_worked_out_by_hand():
    def sample(length: int, *scores) -> Sample:
        item = Problem("add", "integer", "1", "2", "3", length)
        return Sample(0, item, "", completion("3"), {"": Reading("3", *scores)})

    samples = [sample(10, False, 0.5, 2), sample(9, True, 1.0, 0), sample(10, True, 1.0, 0)]
    curves = LengthCurves([], PLAIN).summarize(samples)
    assert list(curves["add_integer"]) == [9, 10]
    ten = curves["add_integer"][10]
    assert (ten.exact_match.value, ten.digit_match.value, ten.dlength.value) == (0.5, 0.75, 1)
    assert ten.exact_match.n == 2
