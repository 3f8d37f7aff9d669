import doctest
import importlib
import io
import os
import re
import shutil
import subprocess
import sys
import warnings
from typing import Any

import pytest

import lab
import lab.api
from lab.config.notation import FormatConfig
from lab.config.schema import ModelConfig
from lab.engines.engine import Completion
from lab.errors import ConfigError, LabError, ModelError, TaskError
from lab.models import sources
from lab.models.loading import load as load_any
from lab.numbers.sampling import Problem
from lab.numbers.tasks import TASKS
from lab.pretrain import main as pretrain
from lab.probing.bridge import open_model

EVERY = list(TASKS.values())


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("runs")
    pretrain(["scratch_add", "smoke=true", f"output={folder}"])
    return str(folder / "scratch_add_smoke")


@pytest.fixture(scope="module")
def toy(toy_model) -> lab.api.Model:
    return lab.load(str(toy_model), device="cpu")


@pytest.mark.parametrize(
    ("text", "task", "answer"),
    [
        ("12 + 34", "add_integer", "46"),
        (" 12+34 = ", "add_integer", "46"),
        ("1.5 - 0.25", "sub_float", "1.25"),
        ("3/4 + 1/4", "add_fraction", "1/1"),
        ("1.5e3 * 2.0e1", "multiply_hard_scientific", "3.0e4"),
        ("17 % 5", "mod_integer", "2"),
        ("max_integer 12, 34", "max_integer", "34"),
        ("max(12, 34)", "max_integer", "34"),
        ("length 12345", "length_integer", "5"),
        ("get_digit 987, 1", "get_digit_integer", "8"),
    ],
)
def test_a_question_is_read_as_the_problem_of_a_task(text, task, answer):
    found = lab.api.read_question(text, EVERY)
    assert found is not None
    assert (f"{found.task}_{found.representation}".replace("_easy", "_hard"), found.answer) == (task, answer)


@pytest.mark.parametrize("text", ["What is 12 + 34?", "12 +", "1 / 0", "3 - 5", "/ + e", "sum 1, 2", ""])
def test_what_is_no_question_of_a_task_is_none(text):
    assert lab.api.read_question(text, EVERY) is None


def test_the_five_lines_of_the_readme(toy):
    assert "Model(" in repr(toy)
    assert isinstance(toy.ask("12 + 34"), str)
    problems = lab.problems("add_integer", digits=5, n=6)
    assert len({(item.a, item.b) for item in problems}) == 6
    assert all(isinstance(item, Problem) and item.length == 5 for item in problems)
    found = lab.evaluate(toy, problems)
    assert [sample.question for sample in found.samples] == problems
    assert "6 problems" in repr(found)
    frame = found.to_frame()
    assert list(frame["answer"]) == [item.answer for item in problems]
    assert frame["exact_match"].mean() == found.scores["add_integer", 5].exact_match.value
    assert found.plot().axes


@pytest.mark.slow
def test_a_model_from_scratch_is_asked_in_its_own_notation_and_refuses_what_it_cannot_read(scratch):
    model = lab.load(scratch)
    assert "from scratch" in repr(model)
    assert set(model.ask("12 + 34")) <= set("0123456789")
    with pytest.raises(TaskError, match="reads only add_integer"):
        model.ask("12 - 3")
    assert len(lab.evaluate(model, lab.problems("add_integer", digits=4, n=3)).samples) == 3


def test_probing_returns_arrays_with_axes(scratch):
    found = lab.probe(scratch, ["alignment"], digits=[2, 3], per_length=8, pairs=8)
    assert found.measured
    name = found.measured[0].name
    assert found[name].value.shape == tuple(len(labels) for labels in found[name].axes.values())
    with pytest.raises(KeyError, match="there is no 'nothing'"):
        found["nothing"]


def test_a_bridge_of_ones_own_is_probed_like_a_model_with_a_name(scratch):
    found = lab.probe(open_model(scratch), ["alignment"], digits=[2, 3], per_length=8, pairs=8)
    named = lab.probe(scratch, ["alignment"], digits=[2, 3], per_length=8, pairs=8)
    assert found.verdicts == named.verdicts
    with pytest.raises(ConfigError, match="a bridge of your own has a prompt already"):
        lab.probe(open_model(scratch), ["alignment"], template="{a}+{b}=")


def test_a_column_whose_digit_is_never_0_is_refused_before_anything_is_measured(scratch):
    with pytest.raises(ConfigError, match=r"column=1 is the highest of sums.trained=2 digits.*interchange need"):
        lab.probe(scratch, ["interchange"], digits=[2])


CLIPPED = {"clipped_distances": {"at": 9}}


def test_a_model_whose_attention_was_changed_is_not_probed_as_if_it_was_not(scratch):
    with pytest.raises(ModelError, match=r"loaded with parts\.clipped_dist.*, but a model is probed as it was saved"):
        lab.probe(lab.load(str(scratch), parts=CLIPPED), digits=[2, 3])


def test_there_are_no_problems_of_no_digits():
    for digits in (0, -1):
        with pytest.raises(TaskError, match=f"digits={digits}: should be 1 or more"):
            lab.problems("add_integer", digits=digits)


def test_bad_input_is_one_line(scratch):
    with pytest.raises(ConfigError, match=r"^instruments\.0: "):
        lab.probe(scratch, ["microscope"])
    with pytest.raises(TaskError, match="add_intger"):
        lab.problems("add_intger", digits=3)
    with pytest.raises(ConfigError, match=r"^prats: "):
        lab.load("zoo/adds-4-digits", prats=CLIPPED)
    with pytest.raises(ModelError, match=r"parts\.clipped: no such part; parts here: abacus_ids"):
        lab.load("zoo/adds-4-digits", parts={"clipped": {"at": 9}})
    with pytest.raises(ConfigError, match=r"parts\.clipped_distances does not go with a smallest adder"):
        lab.load("zoo/adder-8-parameters", parts=CLIPPED)
    with pytest.raises(ModelError, match=r"clipped_distances works only with RoPE, not with parts\.relative_keys"):
        lab.load("zoo/adds-1000-from-four", parts=CLIPPED)
    with pytest.raises(ModelError) as error:
        lab.load("nowhere/at_all")
    assert "\n" not in str(error.value)


def test_problems_that_may_have_been_trained_on_come_with_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lab.problems("max_integer", digits=5, n=1)
    with pytest.warns(UserWarning, match="max_integer is tested from 5 digits; problems of 4 may have been trained on"):
        lab.problems("max_integer", digits=4, n=1)


def test_commands_of_the_same_names_do_not_hide_the_functions():
    for name in ("evaluate", "probe"):
        assert importlib.import_module(f"lab.{name}").main
        assert callable(getattr(lab, name))


def test_the_command_answers_a_question_and_says_whether_it_is_right(toy_model, capsys, monkeypatch):
    from lab.ask import main

    monkeypatch.setitem(os.environ, "COLUMNS", "80")
    main([str(toy_model), "12 + 34", "device=cpu"])
    assert "(wrong: 46 is right)" in capsys.readouterr().out
    main(["zoo/adds-4-digits", "12 + 34"])
    assert capsys.readouterr().out == "46 (right)\n"
    for words in ([], [str(toy_model), "1 + 1", "dtype=int"]):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1


class Writes:
    """An engine that writes one text and remembers how much room it was given."""

    def __init__(self, text: str, format: FormatConfig, reason: str = "stop") -> None:
        self.text, self.format, self.reason = text, format, reason

    def generate(self, requests, *_):
        self.room = requests[0].max_tokens
        yield {0: Completion(self.text, 1, 7, 0.0, self.reason)}


def model_that_writes(text: str, reason: str = "stop", caveat: str = "", **format: Any) -> lab.api.Model:
    engine: Any = Writes(text, FormatConfig(**format), reason)
    return lab.api.Model("m", engine, lambda items: pytest.fail("no benchmark"), EVERY, "cpu", caveat=caveat)


@pytest.mark.parametrize("digits", [1, 100, 1000])
def test_a_question_in_running_text_gets_room_for_its_sum_and_its_product(digits):
    model: Any = model_that_writes("")
    model.ask(f"{'9' * digits} and {'9' * digits} are together")
    assert model.engine.room >= 2 * digits + 1


@pytest.mark.parametrize(
    ("text", "format", "number"),
    [
        (" 8064", {"reverse": "answer"}, "4608"),
        (" 04608", {"pad": "answer", "carry_place": True}, "4608"),
        (" 00100 and so on", {"reverse": "answer", "pad": "answer"}, "100"),
        (" 4608 of them", {}, "4608"),
        (" no number", {}, ""),
    ],
)
def test_the_number_of_an_answer_is_shown_in_natural_order_without_padding(text, format, number, capsys):
    from lab.ask import answer

    model = model_that_writes(text, **format)
    assert model.answer("512 and 4096 are together").number == number
    answer(model, "512 and 4096 are together", None)
    assert capsys.readouterr().out == f"{text}\n" + (f"(the number is {number})\n" if number and format else "")


@pytest.mark.parametrize("rewritten", [True, False])
@pytest.mark.parametrize(
    ("text", "shown"), [(" 077", " in '077'"), ("I do\nnot know.", r" in 'I do\nnot know.'"), ("", ""), (" \n", "")]
)
def test_a_text_without_a_number_of_the_kind_that_is_asked_for_is_shown(text, shown, rewritten, toy, capsys):
    from lab.ask import answer

    class Silent:
        tasks, caveat = toy.tasks, ""

        def answer(self, question):
            return lab.api.Answer(text, "", 5, False, rewritten)

    answer(Silent(), "3.25 + 4.5 =", None)  # type: ignore[arg-type]
    assert capsys.readouterr().out == f"no answer{shown} (wrong: 7.75 is right)\n"


def test_an_answer_that_was_cut_off_and_what_the_model_cannot_do_are_said(capsys):
    from lab.ask import answer

    answer(model_that_writes(" 12", "length", caveat="an adder, not an assistant"), "Tell me a story", None)
    assert capsys.readouterr().out == " 12\n(cut off after 7 tokens)\n(an adder, not an assistant)\n"


def test_a_question_without_quotes_is_read_as_with_them(capsys):
    from lab.ask import main

    main(["zoo/adds-4-digits", "12", "+", "34"])
    assert capsys.readouterr().out == "46 (right)\n"


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("12 - 34", "a difference should not be negative"),
        ("1,200 - 34", "write numbers without separators: 1200 - 34"),
        ("12 + 34", "this asks for add_integer"),
        ("", "such as sub_integer 874, 236"),
        ("hello", "such as sub_integer 874, 236"),
        ("34 - 12 - 5", "such as sub_integer 874, 236"),
    ],
)
def test_what_a_model_from_scratch_cannot_read_is_refused_for_the_reason_that_fits(question, why):
    with pytest.raises(TaskError, match="this model from scratch reads only sub_integer") as refused:
        lab.load("zoo/subtracts").ask(question)
    assert str(refused.value).endswith(why)


@pytest.mark.parametrize("text", ["a: [1", "- 1\n", "\xff", "", "model: 5\n", "[" * 5000])
def test_a_broken_config_of_a_run_is_one_line_wherever_the_run_is_opened(text, tmp_path):
    folder = shutil.copytree(sources.zoo()["zoo/adds-4-digits"], tmp_path / "run")
    (folder / "config.yaml").write_bytes(text.encode("latin-1"))
    for opens in (lab.load, open_model, lambda name: load_any(ModelConfig(name=name))):
        with pytest.raises(
            LabError, match=r"config\.yaml|reads its own notation|only lab ask|cannot be loaded"
        ) as refused:
            opens(str(folder))
        assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_the_python_api_prints_nothing_of_other_libraries(tmp_path):
    code = """
import sys, lab
model = lab.load("zoo/adds-4-digits")
assert model.ask("12 + 34") == "46"
lab.evaluate(model, lab.problems("add_integer", digits=4, n=4)).to_frame()
lab.probe(model, digits=[3])
from lab.models import loading
print({"bitsandbytes", "peft"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")


@pytest.mark.slow
def test_only_an_adder_needs_the_adders():
    code = "import sys, lab.api, lab.ask, lab.evaluate; print([name for name in sys.modules if 'lab.adders' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_command_reads_questions_until_an_empty_line(scratch, capsys, monkeypatch):
    from lab.ask import main

    monkeypatch.setattr("sys.stdin", io.StringIO("12 + 34\nmax(1, 2)\n\n5 + 5\n"))
    main([scratch, "device=cpu"])
    first, second = capsys.readouterr().out.strip().splitlines()
    assert "(wrong: 46 is right)" in first
    assert "reads only add_integer" in second


def test_the_command_shows_what_heads_look_at(scratch, capsys):
    from lab.ask import main

    main([scratch, "12 + 34", "attention=true"])
    shown = capsys.readouterr().out
    assert "L0H" in shown
    assert "4[6]" in shown
    assert "[4]6" in shown
    for words, message in [(["max(1, 2)"], "sums of two integers"), (["12.5 + 1"], "sums of two integers")]:
        with pytest.raises(SystemExit) as stopped:
            main([scratch, *words, "attention=true"])
        assert stopped.value.code == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nupa_smollm2", "12 + 34", "dtype=bfloat16"], "dtype: a config of evaluate says this itself"),
        (["smollm2_lora", "12 + 34"], "a config of finetune, not of evaluate; .* give checkpoints/smollm2_lora"),
    ],
)
def test_the_command_refuses_a_config_that_is_not_one_of_evaluate_and_options_that_it_would_ignore(words, why, capsys):
    from lab.ask import main

    with pytest.raises(SystemExit):
        main(words)
    assert re.search(why, capsys.readouterr().err)


def test_a_model_behind_an_endpoint_is_asked_by_its_config(toy_model, tmp_path, capsys):
    from lab.ask import main

    config = tmp_path / "served.yaml"
    config.write_text(
        f"name: served\nengine: {{kind: local, model: {{name: {toy_model}, device: cpu}}}}\nbenchmark: {{kind: nupa}}\n"
    )
    main([str(config), "12 + 34"])
    assert "(wrong: 46 is right)" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["nupa_endpoint", "12 + 34", "attention=true"])
    assert "needs a model or a run" in capsys.readouterr().err


def test_the_examples_in_the_docstrings_are_true():
    assert doctest.testmod(lab.api).failed == 0
