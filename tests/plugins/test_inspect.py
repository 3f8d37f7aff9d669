import subprocess
import sys
from importlib.metadata import entry_points
from statistics import mean

import pytest

pytest.importorskip("inspect_ai")

from inspect_ai import eval as evaluate
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)

from lab.config.evaluation import CarryFreeConfig, NupaConfig, TwoIntegersConfig
from lab.engines.engine import Completion
from lab.plugins.inspect_tasks import carry_free, nupa, two_integers
from lab.plugins.shared import figures, open_cached

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    """Inspect keeps traces in the user's data folder; the tests give it another one."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def run(task, answer, folder, **arguments):
    """The log of an eval in which the model's reply to a question's messages is `answer(messages)`."""

    def output(messages, tools, tool_choice, config):
        made = answer(messages)
        if isinstance(made, str):
            made = ModelOutput.from_content("mockllm/model", made)
        made.usage = ModelUsage()  # counting tokens would download an encoding
        return made

    model = get_model("mockllm/model", custom_outputs=output)
    (log,) = evaluate(task, model=model, log_dir=str(folder), display="none", **arguments)
    assert log.status == "success", log.error
    return log


def means(log):
    return {score.name: {name: metric.value for name, metric in score.metrics.items()} for score in log.results.scores}


def reply(index, answer):
    return (answer, f"I think: {answer}", "nothing")[index % 3]


def replies(benchmark):
    """The reply to each question, by its last message."""
    requests = benchmark.requests()
    return {text(r.prompt): reply(i, benchmark.problems[i].answer) for i, r in enumerate(requests)}


def text(prompt):
    return prompt if isinstance(prompt, str) else prompt[-1].content


def our_means(benchmark):
    scores = [
        figures(benchmark.score(i, Completion(reply(i, benchmark.problems[i].answer), 1, 1, 0.0, "stop")))
        for i in range(len(benchmark))
    ]
    return {name: mean(score[name] for score in scores) for name in scores[0]}


@pytest.mark.parametrize(("setting", "shots"), [("chat", 0), ("api", 2), ("base", 0)])
def test_inspect_finds_the_numbers_that_nupa_finds(tmp_path, setting, shots):
    tasks = ["add_integer", "max_fraction"]
    config = NupaConfig(tasks=tasks, problems_per_range=3, setting=setting, shots=shots)
    ours = open_cached(config.model_dump_json(), 5)
    known = replies(ours)
    asked = {}

    def answer(messages):
        asked[messages[-1].text] = [(message.role, message.text) for message in messages]
        return known[messages[-1].text]

    log = run(nupa(tasks, problems_per_range=3, setting=setting, shots=shots, seed=5), answer, tmp_path)
    for request in ours.requests():
        messages = request.prompt if not isinstance(request.prompt, str) else (("user", request.prompt),)
        assert asked[text(request.prompt)] == [tuple(message) for message in messages]
    found, expected = means(log), our_means(ours)
    assert {name: metrics["mean"] for name, metrics in found.items()} == pytest.approx(expected)
    assert found["exact_match_loose"]["grouped_add_integer"] == pytest.approx(8 / 12)
    assert found["exact_match_loose"]["stderr"] > 0
    assert log.plan.config.temperature == 0
    assert log.plan.config.max_tokens == max(r.max_tokens for r in ours.requests())


def test_inspect_finds_the_numbers_that_the_sums_find(tmp_path):
    configs = [TwoIntegersConfig(problems=7), CarryFreeConfig(problems_per_length=1, language="en")]
    for config, task in zip(configs, [two_integers(7), carry_free(1, "en")], strict=True):
        ours = open_cached(config.model_dump_json(), 0)
        known = replies(ours)
        log = run(task, lambda messages, known=known: known[messages[-1].text], tmp_path)
        found = means(log)
        assert {name: metrics["mean"] for name, metrics in found.items()} == pytest.approx(our_means(ours))
        sample = log.samples[1]
        assert (sample.target, sample.metadata["index"]) == (ours.problems[1].answer, 1)
        assert sample.scores["readings"].metadata["outcome"] == "parse_error"


def test_thoughts_and_a_spent_budget_reach_the_score(tmp_path):
    known = {text(r.prompt): item for r, item in zip(*_carry_free(), strict=True)}

    def answer(messages):
        thought = ContentReasoning(reasoning=f"so it is {known[messages[-1].text].answer}")
        message = ChatMessageAssistant(content=[thought, ContentText(text="It is")])
        choice = ChatCompletionChoice(message=message, stop_reason="max_tokens")
        return ModelOutput(model="mockllm/model", choices=[choice])

    log = run(carry_free(1, "en"), answer, tmp_path, limit=3)
    for sample in log.samples:
        scored = sample.scores["readings"].metadata
        assert (scored["parse_error"], scored["right_in_text"]) == ("truncated", ["reasoning"])
        assert sample.scores["readings"].value == {"success_strict": 0, "success_loose": 0, "success_final": 0}


def _carry_free():
    ours = open_cached(CarryFreeConfig(problems_per_length=1, language="en").model_dump_json(), 0)
    return ours.requests(), ours.problems


def test_a_single_task_may_be_named_and_an_unknown_one_is_refused():
    assert len(nupa("count_integer", problems_per_range=1).dataset) == 4
    with pytest.raises(ValueError, match="add_integer"):
        nupa("add_integr", problems_per_range=1)


def test_inspect_knows_the_tasks_as_lab_slash_name(tmp_path):
    log = run("lab/two_integers", lambda messages: "1", tmp_path, task_args={"problems": 2})
    assert log.eval.task == "lab/two_integers"
    assert means(log)["success_strict"]["mean"] == 0


@pytest.mark.parametrize("name", ["nupa", "two_integers"])
def test_a_local_model_has_the_same_figures_and_the_same_budgets_as_in_the_lab(tmp_path, sevens, in_the_lab, name):
    config = {
        "nupa": NupaConfig(tasks=["add_integer", "max_float"], problems_per_range=2, setting="chat"),
        "two_integers": TwoIntegersConfig(problems=3),
    }[name]
    task = two_integers(3, seed=3) if name == "two_integers" else nupa(["add_integer", "max_float"], 2, seed=3)
    found = means(local(task, sevens, tmp_path))
    assert {name: metrics["mean"] for name, metrics in found.items()} == pytest.approx(
        in_the_lab(config.model_dump_json(), 3)
    )


def test_what_the_user_says_about_budget_and_temperature_goes_first(tmp_path, sevens):
    log = local(nupa("add_integer", 1), sevens, tmp_path, max_tokens=40, temperature=0.5)
    assert {sample.output.completion for sample in log.samples} == {"7" * 80}
    assert log.plan.config.temperature == 0.5


def local(task, folder, logs, **settings):
    """The log of an eval of a model on disk, with Inspect's own Hugging Face provider."""
    model = get_model("hf/sevens", model_path=str(folder), device="cpu")
    (log,) = evaluate(task, model=model, log_dir=str(logs), display="none", **settings)
    assert log.status == "success", log.error
    return log


def test_the_entry_point_leads_to_the_tasks():
    found = [point for point in entry_points(group="inspect_ai") if point.name == "lab"]
    if not found:
        pytest.skip("number-lab is installed without its entry point")
    assert found[0].load() is sys.modules["lab.plugins.inspect_tasks"]


def test_the_plugin_does_not_import_torch():
    code = "import sys, lab.plugins.inspect_tasks; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
