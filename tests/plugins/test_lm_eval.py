import subprocess
import sys
from statistics import mean

import pytest
import yaml

from lab.benchmarks.nupa.scoring import Nupa
from lab.benchmarks.sums.two_integers import TwoIntegers
from lab.config.evaluation import CarryFreeConfig, NupaConfig, TwoIntegersConfig
from lab.engines.engine import Completion
from lab.numbers.tasks import TASKS
from lab.plugins.lm_eval import process_results, tasks_folder
from lab.plugins.shared import NUPA_METRICS, SUM_METRICS, completed, figures, open_cached

pytest.importorskip("lm_eval")

import lm_eval
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

pytestmark = pytest.mark.slow


class Parrot(LM):
    """It answers one question right, the next one right among words, the third not at all, and so on."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def generate_until(self, requests, disable_tqdm=False):
        self.asked += requests
        return [reply(request.doc["index"], request.doc["answer"]) for request in requests]

    def loglikelihood(self, requests):
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood


def reply(index, answer):
    return (f" {answer}", f" I think {answer}", " nothing")[index % 3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield tasks_folder()


def manager(folder, **metadata):
    return TaskManager(include_path=str(folder), include_defaults=False, metadata=metadata)


def test_the_folder_holds_every_task_once_and_is_mended_when_it_is_not_of_this_version(folder):
    names = {path.stem for path in folder.iterdir()}
    assert names == {f"nupa_{key}" for key in TASKS} | {"nupa", "two_integers", "carry_free"}
    before = {path.name: path.read_text() for path in folder.iterdir()}
    written = folder.stat().st_ino
    assert tasks_folder() == folder
    assert folder.stat().st_ino == written
    (folder / "nupa_add_integer.yaml").write_text("task: nupa_add_integer\n")
    (folder / "nupa_no_longer_there.yaml").write_text("task: nupa_no_longer_there\n")
    assert tasks_folder() == folder
    assert {path.name: path.read_text() for path in folder.iterdir()} == before
    assert list(folder.parent.iterdir()) == [folder]


def test_lm_eval_loads_every_task(folder):
    tasks = manager(folder, problems_per_range=1, problems=2, problems_per_length=1)
    assert tasks.all_groups == ["nupa"]
    loaded = tasks.load(["nupa", "two_integers", "carry_free"])
    assert set(loaded["group_map"]["nupa"]) == {f"nupa_{key}" for key in TASKS}
    assert len(loaded["tasks"]) == 55
    for name, task in loaded["tasks"].items():
        metrics = NUPA_METRICS if name.startswith("nupa") else SUM_METRICS
        assert task.higher_is_better() == metrics
        assert task.config.generation_kwargs["until"] == []
        assert task.config.num_fewshot == 0
        doc = task.eval_docs[0]
        asked = open_cached(doc["benchmark"], doc["problem_seed"]).requests()
        assert len(task.eval_docs) == len(asked) > 1
        # What lm-eval shows as the task's budget is enough for all of its lengths.
        assert max(r.max_tokens for r in asked) <= task.config.generation_kwargs["max_gen_toks"]


def test_lm_eval_finds_the_numbers_that_the_benchmarks_find(folder):
    parrot = Parrot()
    options = {"problems_per_range": 4, "problems": 7, "problems_per_length": 1, "language": "en", "problem_seed": 3}
    keys = ("add_integer", "max_fraction", "sig_float")
    names = [f"nupa_{key}" for key in keys]
    # What else lm-eval hands on as metadata, such as the model's arguments, changes nothing.
    tasks = manager(folder, **options, pretrained="x", seed=1234, max_tokens=1)
    results = lm_eval.simple_evaluate(
        parrot, tasks=[*names, "two_integers", "carry_free"], task_manager=tasks, bootstrap_iters=0, num_fewshot=2
    )
    assert results
    ours = {f"nupa_{key}": Nupa.from_config(NupaConfig(tasks=[key], problems_per_range=4), seed=3) for key in keys}
    ours["two_integers"] = TwoIntegers(TwoIntegersConfig(problems=7), seed=3)
    config = CarryFreeConfig(problems_per_length=1, language="en")
    ours["carry_free"] = open_cached(config.model_dump_json(), 3)
    for name, benchmark in ours.items():
        asked = [request for request in parrot.asked if request.task_name == name]
        assert [request.args[0] for request in asked] == [text(r.prompt) for r in benchmark.requests()]
        scores = [
            figures(benchmark.score(i, Completion(reply(i, benchmark.problems[i].answer), 1, 1, 0.0, "stop")))
            for i in range(len(benchmark))
        ]
        found = {key.removesuffix(",none"): value for key, value in results["results"][name].items()}
        for metric in NUPA_METRICS if name in names else SUM_METRICS:
            assert found[metric] == pytest.approx(mean(score[metric] for score in scores))
    add, sums = results["results"]["nupa_add_integer"], results["results"]["two_integers"]
    assert add["exact_match_strict,none"] == 6 / 16
    assert add["exact_match_loose,none"] == 11 / 16
    assert (sums["success_strict,none"], sums["success_loose,none"]) == (3 / 7, 5 / 7)
    assert (add["exact_match_final,none"], sums["success_final,none"]) == (11 / 16, 5 / 7)


@pytest.mark.parametrize("metric", ["dlength", "exact_match_final", "success_final"])
def test_a_local_model_has_the_same_figures_and_the_same_budgets_as_in_the_lab(folder, sevens, in_the_lab, metric):
    nupa = metric != "success_final"
    # lm_eval hands on the arguments of the model as metadata
    options = {"problems_per_range": 2, "problems": 3, "problem_seed": 3, "pretrained": str(sevens)}
    results = lm_eval.simple_evaluate(
        "hf",
        model_args={"pretrained": str(sevens), "dtype": "float32", "device": "cpu"},
        tasks=["nupa_add_integer", "nupa_max_float"] if nupa else ["two_integers"],
        task_manager=manager(folder, **options),
        bootstrap_iters=0,
        apply_chat_template=not nupa,
    )
    assert results
    for task in ("add_integer", "max_float") if nupa else ("two_integers",):
        config = NupaConfig(tasks=[task], problems_per_range=2) if nupa else TwoIntegersConfig(problems=3)
        expected = in_the_lab(config.model_dump_json(), 3)
        found = results["results"][f"nupa_{task}" if nupa else task]
        assert found[f"{metric},none"] == pytest.approx(expected[metric])


def test_a_budget_of_the_users_own_goes_before_the_labs(folder, sevens):
    results = lm_eval.simple_evaluate(
        "hf",
        model_args={"pretrained": str(sevens), "dtype": "float32", "device": "cpu"},
        tasks=["nupa_add_integer"],
        task_manager=manager(folder, problems_per_range=1),
        bootstrap_iters=0,
        gen_kwargs={"max_gen_toks": 40},
    )
    assert results
    assert {answer[0] for sample in results["samples"]["nupa_add_integer"] for answer in sample["resps"]} == {"7" * 80}


def text(prompt):
    return prompt if isinstance(prompt, str) else prompt[-1].content


def test_shots_are_the_benchmarks_own_and_thoughts_are_not_the_answer(folder):
    task = manager(folder, problems_per_range=1, shots=2).load("nupa_add_integer")["tasks"]["nupa_add_integer"]
    doc = task.eval_docs[0]
    assert doc["prompt"].count("\n") == 2
    thinking = f"<think>It is 1.</think> {doc['answer']}"
    assert process_results(doc, [thinking])["exact_match_strict"] == 1
    assert process_results(doc, [None])["exact_match_loose"] == 0
    assert completed(thinking).reasoning == "It is 1."


def test_the_yaml_names_functions_and_no_prompt_begins_with_a_description(folder):
    lines = (folder / "nupa_add_integer.yaml").read_text().splitlines()
    assert "custom_dataset: !function 'lab.plugins.lm_eval.questions'" in lines
    assert "process_results: !function 'lab.plugins.lm_eval.process_results'" in lines
    group = yaml.safe_load((folder / "nupa.yaml").read_text())
    assert [item["metric"] for item in group["aggregate_metric_list"]] == list(NUPA_METRICS)
    assert not any(line.startswith("description") for line in lines)


def test_the_plugin_imports_neither_torch_nor_lm_eval():
    code = "import sys, lab.plugins.lm_eval; sys.exit(bool({'torch', 'lm_eval'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
