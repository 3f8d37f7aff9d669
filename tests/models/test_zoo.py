"""The models that come with the lab do what their cards say, wherever the lab is started."""

import json
import random
import shutil
from pathlib import Path

import pytest

import lab
from lab.config.finetuning import Swap
from lab.errors import ModelError, TaskError
from lab.evaluate import main as evaluate
from lab.models import sources
from lab.models.swaps import FILE, recorded
from lab.numbers.additions import STRATA, addition
from lab.numbers.sampling import posed
from lab.numbers.tasks import SUM, TASKS


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def right(name: str, digits: int, n: int) -> float:
    samples = lab.evaluate(f"zoo/{name}", [addition("carries", digits, 0, index) for index in range(n)]).samples
    return sum(bool(sample.reading.exact_match) for sample in samples) / n


def test_each_model_has_a_card_that_says_how_to_open_it_and_how_it_was_trained():
    found = sources.zoo()
    scratch = {"adds-4-digits", "adds-1000", "adds-1000-from-four", "adds-10-without-locality", "subtracts"}
    scratch |= {"adds-10-rope", "adds-as-written", "adds-floats", "adder-8-parameters", "adder-gpt"}
    scratch |= {"answers-after-traces"}
    assert {"zoo/adds-in-prose", *(f"zoo/{name}" for name in scratch)} <= set(found)
    for name, folder in found.items():
        card = (folder / "README.md").read_text()
        assert card.startswith(f"# {sources.about(folder)}\n")
        assert f'lab.load("{name}")' in card
        assert "## How it was trained" in card
        assert "/root/" not in card


def test_the_swap_of_each_model_can_be_read():
    swapped = [folder for folder in sources.zoo().values() if list(folder.rglob(FILE))]
    assert len(swapped) >= 3
    for folder in swapped:
        for file in folder.rglob(FILE):
            assert recorded(file.parent) != Swap()


def number(digits: int, index: int) -> int:
    """A number with so many uniform digits, different for each index; 0 for no digits."""
    drawn = random.Random(f"{digits} {index}")
    return drawn.randrange(10 ** (digits - 1), 10**digits) if digits > 1 else drawn.randrange(10) if digits else 0


def sides(name: str, task: str, digits: int, n: int = 12) -> dict[tuple[int, int], float]:
    """The share of right answers for each pair of lengths that has a number of so many digits: all shorter numbers, and
    0, on either side. A difference takes the larger number first."""
    pairs = [pair for short in range(digits + 1) for pair in {(digits, short), (short, digits)}]
    asked, model = [], lab.load(f"zoo/{name}")
    for left, other in pairs:
        for index in range(n):
            a, b = number(left, index), number(other, index + 3)
            a, b = (max(a, b), min(a, b)) if task == "sub_integer" else (a, b)
            asked.append(posed(TASKS[task], str(a), str(b), digits))
    samples = lab.evaluate(model, asked).samples
    return {
        pair: sum(bool(sample.reading.exact_match) for sample in samples[n * place : n * (place + 1)]) / n
        for place, pair in enumerate(pairs)
    }


TEN = ("adds-1000", "adds-10-rope", "adds-1000-rope", "adds-10-without-locality", "adder-gpt", "adder-8-parameters")
CLAIMS = [
    *[("adds-4-digits", "add_integer", digits) for digits in (1, 2, 3, 4)],
    *[(name, "add_integer", 10) for name in TEN],
    *[("adds-1000-from-four", "add_integer", digits) for digits in (4, 12)],
    *[("adds-as-written", "add_integer", digits) for digits in (6, 12)],
    *[("nineteen-tasks", task, 6) for task in ("add_integer", "sub_integer")],
    *[("subtracts", "sub_integer", digits) for digits in (4, 12)],
    ("answers-after-traces", "add_integer", 4),
]
"""Models, tasks and lengths that a card claims, each of which is asked at all pairs of lengths."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task", "digits"), CLAIMS)
def test_a_model_is_right_at_all_pairs_of_lengths_that_its_card_claims(name, task, digits):
    assert {pair: share for pair, share in sides(name, task, digits).items() if share < 0.9} == {}


def float_number(whole: int, decimals: int, index: int) -> str:
    """A float with so many digits before and after its point, the last of them not 0."""
    return f"{number(whole, index)}.{str(number(decimals, index + 7)).zfill(decimals)[:-1]}{1 + index % 9}"


@pytest.mark.slow
@pytest.mark.parametrize("digits", [1, 4, 12])
def test_the_adder_of_floats_is_right_at_all_pairs_of_lengths_before_and_after_the_point(digits):
    asked, places = [], []
    for pair in (pair for short in range(1, digits + 1) for pair in {(digits, short), (short, digits)}):
        for index in range(12):
            others = [random.Random(f"{pair} {index} {side}").randint(1, digits) for side in range(2)]
            for place, lengths in (
                ("before", zip(pair, others, strict=True)),
                ("after", zip(others, pair, strict=True)),
            ):
                a, b = (float_number(*both, index + 3 * side) for side, both in enumerate(lengths))
                asked.append(posed(TASKS["add_float"], a, b, digits))
                places.append((place, pair))
    samples = lab.evaluate("zoo/adds-floats", asked).samples
    assert [where for where, sample in zip(places, samples, strict=True) if not sample.right] == []


@pytest.mark.slow
@pytest.mark.parametrize("digits", [5, 12])
def test_the_model_of_long_sums_is_right_at_all_pairs_of_lengths_and_all_numbers_of_terms(digits):
    pairs = [pair for short in range(digits + 1) for pair in {(digits, short), (short, digits)}]
    terms = [[number(left, index), number(other, index + 3)] for left, other in pairs for index in range(4)]
    for count in range(3, digits + 1):
        lengths = [random.Random(f"{count} {place}").randint(0, digits) for place in range(count - 1)]
        terms.append([number(length, place) for place, length in enumerate([digits, *lengths])])
    asked = [posed(SUM, "+".join(map(str, one)), None, digits) for one in terms]
    assert [sample.problem.a for sample in lab.evaluate("zoo/long-sums", asked).samples if not sample.right] == []


def test_every_model_from_scratch_that_adds_or_subtracts_is_asked_or_its_card_says_what_it_cannot_do():
    asked = {"zoo/adds-floats", "zoo/long-sums", *(f"zoo/{name}" for name, *_ in CLAIMS)}
    for name, folder in sources.zoo().items():
        said = (folder / "README.md").read_text()
        trained = any(f"- {task}\n" in said for task in ("add_integer", "sub_integer", "add_float", "sum_integers"))
        assert not trained or name in asked or sources.caveat(folder), name


@pytest.mark.slow
def test_the_model_of_the_probing_benchmark_cannot_do_what_its_card_says():
    assert "9999 + 1 is wrong" in sources.caveat(sources.zoo()["zoo/adds-4-digits-nupa"])
    found = sides("adds-4-digits-nupa", "add_integer", 4)
    assert found[4, 4] == found[4, 2] == 1
    assert found[4, 1] == found[1, 4] == 0


def test_the_adder_of_the_readme_carries_through_all_places():
    model = lab.load("zoo/adds-4-digits")
    for question, answer in {"9999 + 1": "10000", "1 + 9999": "10000", "0 + 1234": "1234", "12 + 34": "46"}.items():
        assert model.ask(question) == answer


def test_the_models_that_were_tuned_to_compute_say_that_they_are_no_assistants():
    for name in ("adds-in-prose", "adds-as-written-smollm2", "ten-tasks"):
        assert "assistant" in sources.caveat(sources.zoo()[f"zoo/{name}"])
    assert sources.caveat(sources.zoo()["zoo/adds-1000"]) == ""


LONGEST = [("adds-1000", 1021), ("adds-1000-from-four", 2045), ("adds-as-written", 1021)]


@pytest.mark.parametrize(("name", "most"), LONGEST)
def test_a_sum_beyond_the_table_of_ids_is_refused_in_one_line(name, most):
    model = lab.load(f"zoo/{name}")
    said = f"a number here has {most + 1:,} digits, which is beyond this model's table of ids.* at most {most:,} digits"
    with pytest.raises(ModelError, match=said):
        model.ask("1" * (most + 1) + " + 5")
    with pytest.raises(ModelError, match="beyond this model's table of ids"):
        lab.evaluate(model, [addition("uniform", 3000, 0, 0)])


@pytest.mark.slow
def test_the_longest_numbers_that_the_table_of_ids_allows_are_added():
    assert lab.load("zoo/adds-1000-from-four").ask("9" * 2045 + " + 1") == str(10**2045)


def test_the_adder_of_four_digits_adds_four_and_not_five():
    assert right("adds-4-digits", 4, 20) == 1
    assert right("adds-4-digits", 5, 20) == 0


@pytest.mark.slow
def test_the_adders_of_a_thousand_digits_add_two_hundred_and_the_twin_without_locality_adds_ten():
    assert right("adds-1000", 200, 3) == 1
    assert right("adds-1000-from-four", 200, 3) == 1
    assert right("adds-10-without-locality", 10, 20) >= 0.9
    assert right("adds-10-without-locality", 50, 10) == 0


@pytest.mark.slow
def test_the_adder_of_sums_as_people_write_them_reverses_nothing():
    model = lab.load("zoo/adds-as-written")
    assert model.ask("9999999999 + 1") == "10000000000"
    sample = lab.evaluate(model, [addition("carries", 9, 0, 0)]).samples[0]
    assert " ".join(sample.problem.a) in sample.prompt
    assert " ".join(sample.problem.answer) in sample.completion.text
    assert right("adds-as-written", 100, 3) == 1


@pytest.mark.slow
def test_the_twin_without_locality_adds_two_hundred_digits_if_all_far_digits_weigh_no_more_than_five():
    name = "zoo/adds-10-without-locality"
    problems = [addition("nines_short", 200, 0, index) for index in range(3)]
    usual, bounded = lab.load(name), lab.load(name, parts={"far_digits": {"at_most": 5}})
    assert not any(sample.reading.exact_match for sample in lab.evaluate(usual, problems).samples)
    assert all(sample.reading.exact_match for sample in lab.evaluate(bounded, problems).samples)


@pytest.mark.slow
def test_the_adder_with_rope_adds_hundreds_of_digits_if_no_key_is_farther_away_than_in_training():
    problems = [addition(stratum, 100, 0, 0) for stratum in STRATA]
    usual, clipped = lab.load("zoo/adds-10-rope"), lab.load("zoo/adds-10-rope", parts={"clipped_distances": {"at": 9}})
    assert not any(sample.reading.exact_match for sample in lab.evaluate(usual, problems).samples)
    assert all(sample.reading.exact_match for sample in lab.evaluate(clipped, problems).samples)


@pytest.mark.slow
def test_the_adder_with_rope_and_learned_slopes_adds_hundreds_of_digits_as_it_is():
    problems = [addition(stratum, 200, 0, 0) for stratum in STRATA]
    samples = lab.evaluate(lab.load("zoo/adds-1000-rope"), problems).samples
    assert all(sample.reading.exact_match for sample in samples)


def test_a_model_that_was_trained_on_a_gpu_opens_on_the_device_that_is_asked_for(tmp_path):
    folder = shutil.copytree(sources.zoo()["zoo/adds-4-digits"], tmp_path / "trained-elsewhere")
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("device: auto", "device: cuda"))
    assert lab.load(str(folder), device="cpu").ask("12 + 34") == "46"


@pytest.mark.parametrize(("name", "task"), [("subtracts", "sub_integer"), ("adds-floats", "add_float")])
def test_the_models_of_other_tasks_are_right_far_beyond_four_digits(name, task):
    samples = lab.evaluate(f"zoo/{name}", lab.problems(task, digits=50, n=5)).samples
    assert all(sample.reading.exact_match for sample in samples)


@pytest.mark.parametrize(("name", "parameters"), [("adder-8-parameters", 8), ("adder-gpt", 2912)])
def test_the_smallest_adders_add_ten_digits_and_refuse_eleven(name, parameters):
    model = lab.load(f"zoo/{name}")
    assert f"{parameters:,} parameters" in repr(model)
    assert model.ask("123 + 456") == "579"
    assert right(name, 10, 100) == 1
    with pytest.raises(ModelError, match="at most 10 digits, and one here has 11"):
        model.ask("12345678901 + 1")
    with pytest.raises(TaskError, match="reads only add_integer"):
        model.ask("12 - 3")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adds-1000-from-four", "adder-gpt"])
def test_a_model_with_a_notation_of_its_own_is_measured_like_any_other(name, tmp_path, capsys):
    nupa = ["nupa_smollm2", f"engine.model.name=zoo/{name}", "benchmark.problems_per_range=4", f"output={tmp_path}"]
    digits = "benchmark.lengths={easy: [4, 10], hard: [4, 10]}"
    evaluate([*nupa, "name=run", "benchmark.tasks=[add_integer]", digits])
    assert "exact match, % (95 % interval), n=12: 100" in capsys.readouterr().out
    known = "this model knows only add_integer: use benchmark.tasks=[add_integer]"
    assert refusal(capsys, [*nupa, "name=other"]) == known
    assert "asks in words" in refusal(capsys, [*nupa[:2], nupa[3], "name=words", "benchmark={kind: two_integers}"])


def refusal(capsys, arguments: list[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        evaluate(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err.strip().splitlines()[-1].removeprefix("error: ")


@pytest.mark.slow
def test_the_pretrained_adder_adds_in_words():
    model = lab.load("zoo/adds-in-prose")
    answer = model.ask("The library has 512 novels and 4096 essays. Together these are")
    assert answer.split()[0][::-1] == "4608"


@pytest.mark.slow
def test_the_pretrained_adder_that_reverses_nothing_carries_through_sixty_digits():
    assert lab.load("zoo/adds-as-written-smollm2").ask(f"{'9' * 60} + 1") == str(10**60)


@pytest.mark.slow
def test_the_twin_without_locality_is_weak_on_nines_as_its_card_says():
    model, largest = lab.load("zoo/adds-10-without-locality"), 10**10 - 1
    pairs = [[largest - random.Random(index + side).randrange(100) for index in range(200)] for side in (0, 1000)]
    asked = [posed(TASKS["add_integer"], str(a), str(b), 10) for a, b in zip(*pairs, strict=True)]
    right = sum(sample.right for sample in lab.evaluate(model, asked).samples)
    assert model.ask(f"{largest} + {largest}") != str(2 * largest)
    assert f"{right} of 200" in sources.caveat(sources.zoo()["zoo/adds-10-without-locality"])


def test_a_name_that_the_zoo_does_not_have_is_refused_with_those_that_it_has():
    with pytest.raises(ModelError, match=r"^zoo/adds-a-million: the zoo has .*zoo/adds-4-digits"):
        lab.load("zoo/adds-a-million")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "question", "answer"),
    [
        ("long-products", "12345678909 * 98765432109", str(12345678909 * 98765432109)),
        ("long-sums", "+".join(["99999999999"] * 11), str(11 * 99999999999)),
    ],
)
def test_models_that_write_running_totals_are_right_at_twice_the_digits_and_rows_of_their_training(
    name, question, answer
):
    model = lab.load(f"zoo/{name}")
    assert model.ask(question) == answer


@pytest.mark.slow
def test_a_model_of_running_totals_has_ids_for_any_number_of_digits_and_no_task_of_nupa(tmp_path, capsys):
    assert lab.load("zoo/long-sums").ask("9" * 260 + "+1") == str(10**260)
    with pytest.raises(SystemExit):
        evaluate(["nupa_smollm2", "engine.model.name=zoo/long-sums", f"output={tmp_path}", "name=sums"])
    assert "this model knows no task of NUPA" in capsys.readouterr().err


def test_a_model_that_learned_with_traces_answers_directly_where_its_rules_are_not():
    [sample] = lab.evaluate("zoo/answers-after-traces", [addition("carries", 8, 0, 0)]).samples
    assert sample.right
    assert sample.completion.text.startswith("answer is")


ANSWERS = json.loads((Path(__file__).parents[1] / "golden" / "zoo_answers.json").read_text())
"""What the models wrote on 2026-11-29, before parts, trees and models from scratch got rooms of their own."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_a_model_of_the_zoo_answers_as_it_did(name):
    model = lab.load(f"zoo/{name}")
    for question, expected in ANSWERS[name].items():
        text = model.answer(question).text if question.endswith(tuple("s?e")) else model.ask(question)
        assert text == expected, question


@pytest.mark.slow
def test_the_model_that_reads_questions_computes_what_is_asked_and_otherwise_writes_what_smollm2_writes():
    model, untouched = lab.load("zoo/reads-and-computes"), lab.load("smollm2-135m-instruct")
    asked = {
        "The tram had 512 riders, the bus 46. Together they had": " 558 passengers.",
        "900 minus 350 equals": " 550.",
        "The larger of 35 and 53 is": " 53.",
        "The difference between 64 and 100 is": " 36.",
        "12,345,678 + 9,876,543 =": " 22,222,221",
    }
    assert {text: model.ask(text)[: len(answer)] for text, answer in asked.items()} == asked
    for text in ("From 1914 to 1918 there was a war, called", "My name is", "The capital of France is"):
        assert model.ask(text) == untouched.ask(text)
