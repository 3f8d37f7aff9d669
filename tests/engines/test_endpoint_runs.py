"""Evaluations of endpoints from end to end: what a run says, and leaves behind, when answers are missing or no good."""

import json
import re
from pathlib import Path

import pytest

import lab
from lab.api import served
from lab.config.evaluation import EvaluateConfig
from lab.errors import ModelError
from lab.evaluate import main
from lab.report import main as report
from tests.records import records

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
KINDS = {
    "nupa": ["nupa_endpoint", "benchmark.tasks=[add_integer, max_float]", "benchmark.problems_per_range=1"],
    "two_integers": ["two_integers"],
    "carry_free": ["carry_free", "benchmark.problems_per_length=1"],
    "own_questions": ["nupa_endpoint", "benchmark={kind: own_questions, file: FOLDER/own.py}"],
}
BUDGETS = {kind: "benchmark.surplus_tokens" if kind == "nupa" else "benchmark.max_tokens" for kind in KINDS}


@pytest.fixture
def evaluate(tmp_path, capsys, monkeypatch):
    """evaluate(kind, server, key=value, ...) asks the server five questions; returns status, output and errors."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "own.py").write_text(
        "def questions(seed):\n    return [(f'{i} + {i} =', str(2 * i)) for i in range(5)]\n"
    )

    def run(kind, server, *more):
        config, *own = [word.replace("FOLDER", str(tmp_path)) for word in KINDS[kind]]
        engine = [f"engine.base_url={server.url}", "engine.model=adder", "engine.attempts=1", "engine.concurrency=2"]
        words = [str(ROOT / "configs" / f"{config}.yaml"), *own, *engine, "limit=5", "name=run", f"output={tmp_path}"]
        status = 0
        try:
            main([*words, *more])
        except SystemExit as stopped:
            status = stopped.code
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def added(asked):
    """The right answer to NUPA's last question in a prompt."""
    a, b = re.findall(r"(\d+) \+ (\d+)", asked.prompt)[-1]
    return asked.answer(str(int(a) + int(b)))


def samples(tmp_path):
    return records(tmp_path / "run" / "samples.jsonl")


def arrived(tmp_path):
    return json.loads((tmp_path / "run" / "summary.json").read_text())["arrivals"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answered", [0, 1])
def test_a_run_without_answers_ends_with_tables_and_the_servers_words(serve, evaluate, tmp_path, kind, answered):
    def script(asked):
        return asked.right() if len(server.asked) <= answered else asked.reply({"error": "no GPU left"}, status=500)

    server = serve(script)
    status, out, _ = evaluate(kind, server)
    assert status == 0
    missing = 5 - answered
    assert f"{missing} of 5 questions have no answer (500: no GPU left); resume=true asks them again" in out
    assert list((tmp_path / "run" / "tables").iterdir())
    assert len(samples(tmp_path)) == 5
    assert arrived(tmp_path)["answered"] == answered
    answering = serve()
    status, out, _ = evaluate(kind, answering, "resume=true")
    assert "no answer" not in out
    assert len(answering.asked) == missing


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_whose_first_questions_are_refused_is_one_line_and_keeps_its_samples(serve, evaluate, tmp_path, kind):
    message = "Unsupported value: 'temperature' does not support 0 with this model."

    def script(asked):
        refused = asked.reply({"error": {"message": message, "param": "temperature"}}, status=400)
        return refused if "temperature" in asked.body else asked.right()

    server = serve(script)
    status, _, error = evaluate(kind, server)
    assert status == 2
    assert error.count("\n") == 1
    assert f"(400: {message}); sampling.temperature=null leaves temperature out" in error
    assert (tmp_path / "run" / "status").read_text() == "failed\n"
    assert {sample["api_error"] for sample in samples(tmp_path)} == {f"400: {message}"}
    status, out, _ = evaluate(kind, server, "sampling.temperature=null", "overwrite=true")
    assert status == 0
    assert "no answer" not in out


def test_samples_of_a_run_are_kept_when_the_rest_is_refused(serve, evaluate, tmp_path):
    """A resumed run may meet another server."""
    faulty = serve(lambda asked: asked.right() if len(faulty.asked) <= 3 else asked.reply("down", status=500))
    evaluate("two_integers", faulty, "limit=20")
    before = [sample for sample in samples(tmp_path) if not sample["api_error"]]
    assert len(before) == 3
    refusing = serve(lambda asked: asked.reply("no such parameter: max_tokens", status=400))
    status, _, error = evaluate("two_integers", refusing, "limit=20", "resume=true")
    assert status == 2
    assert "refuses each of the first 8 questions" in error
    assert samples(tmp_path)[:3] == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("thoughts", ["", "Let me see"])
def test_answers_that_are_cut_off_are_told_with_the_key_of_their_budget(serve, evaluate, tmp_path, kind, thoughts):
    cut = 5

    def script(asked):
        return asked.answer("", "length", reasoning_content=thoughts) if len(server.asked) <= cut else asked.right()

    server = serve(script)
    _, out, _ = evaluate(kind, server)
    told = [line for line in out.splitlines() if not line.startswith(("too few problems", "samples"))]
    words = "5 of 5 answers were cut off (finish_reason=length), 5 of them before any text"
    assert told[0].startswith(f"the figures say little: {words}; a larger {BUDGETS[kind]} gives them room")
    assert arrived(tmp_path)["cut_off"] == 5
    cut, server = 2, serve(script)
    _, out, _ = evaluate(kind, server, "overwrite=true")
    assert "\n2 of 5 answers were cut off" in f"\n{out}"
    assert "the figures say little" not in out


@pytest.mark.parametrize("kind", KINDS)
def test_empty_answers_are_asked_for_once_more_counted_and_told(serve, evaluate, tmp_path, kind):
    server = serve(lambda asked: asked.answer("") if len(server.asked) <= 4 else asked.right())
    _, out, _ = evaluate(kind, server, "engine.concurrency=1")
    assert "2 of 5 answers are empty, and count as wrong (2 also when asked once more)" in out
    assert len(server.asked) == 7
    assert len(samples(tmp_path)) == 5
    assert (arrived(tmp_path)["answered"], arrived(tmp_path)["empty"]) == (5, 2)


def test_a_comparison_says_which_runs_were_cut_off(serve, evaluate, tmp_path, capsys):
    evaluate("two_integers", serve(lambda asked: asked.answer("12", "length")))
    main([str(tmp_path / "run"), f"out={tmp_path / 'compared'}"])
    assert "run: the figures say little: 5 of 5 answers were cut off" in capsys.readouterr().out


def test_an_answer_that_is_decided_before_its_budget_ends_is_not_cut_off(serve, evaluate, tmp_path):
    """A server does not stop where nothing that follows could change the answer, as the lab's own engine does."""
    server = serve(lambda asked: asked.answer(" 12.\n\nThe", "length"))
    _, out, _ = evaluate("nupa", server, "benchmark.tasks=[add_integer]", "benchmark.setting=base")
    assert "cut off" not in out
    assert arrived(tmp_path)["cut_off"] == 0


def test_a_missing_key_is_told_before_anything_is_done(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(SystemExit) as stopped:
        main([str(ROOT / "configs" / "nupa_endpoint.yaml"), f"output={tmp_path}"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == (
        "error: engine.api_key_env: the environment variable OPENAI_API_KEY should hold a key, but is not set\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_question_to_an_endpoint_is_asked_as_its_config_says(serve):
    server = serve(lambda asked: added(asked) if "12 + 30" in asked.prompt else asked.right())
    engine = {"kind": "openai", "base_url": server.url, "model": "adder"}
    common = {"name": "x", "engine": engine, "benchmark": {"kind": "nupa", "setting": "chat"}}
    asking = served(EvaluateConfig.model_validate({**common, "sampling": {"temperature": None}}))
    assert asking.ask("12 + 30") == "42"
    asking.ask("What is it?")
    assert all("temperature" not in asked.body for asked in server.asked)


@pytest.mark.parametrize("question", ["12 + 30", "What is it?"])
def test_a_question_that_an_endpoint_refuses_is_one_line_and_no_wrong_answer(serve, question):
    server = serve(lambda asked: asked.reply("no temperature", status=400))
    engine = {"kind": "openai", "base_url": server.url, "model": "adder"}
    asking = served(EvaluateConfig.model_validate({"name": "x", "engine": engine, "benchmark": {"kind": "nupa"}}))
    with pytest.raises(ModelError, match=r"\(400: no temperature\); sampling.temperature=null leaves temperature out"):
        asking.ask(question)


def test_figures_of_a_model_count_answered_questions_only(serve):
    server = serve(lambda asked: added(asked) if len(server.asked) % 2 else asked.reply("no", status=400))
    engine = {"kind": "openai", "base_url": server.url, "model": "adder"}
    asking = served(EvaluateConfig.model_validate({"name": "x", "engine": engine, "benchmark": {"kind": "nupa"}}))
    found = lab.evaluate(asking, lab.problems("add_integer", 5, n=10))
    assert found.scores["add_integer", 5].exact_match[::3] == (1.0, 5)
    silent = serve(lambda asked: asked.reply(f"no {'o' * len(asked.prompt)}", status=500))
    engine["base_url"] = silent.url
    engine["attempts"] = 1
    asking = served(EvaluateConfig.model_validate({"name": "x", "engine": engine, "benchmark": {"kind": "nupa"}}))
    nothing = lab.evaluate(asking, lab.problems("add_integer", 5, n=3))
    assert nothing.scores == {}
    assert nothing.plot()


@pytest.mark.parametrize("answered", [0, 1])
def test_a_report_shows_a_run_without_answers(serve, evaluate, tmp_path, answered):
    server = serve(lambda asked: asked.right() if len(server.asked) <= answered else asked.reply("down", status=500))
    for kind in KINDS:
        evaluate(kind, server, "overwrite=true")
        report([str(tmp_path / "run"), f"out={tmp_path / kind}"])
        assert list((tmp_path / kind).rglob("*.html"))
