"""The benchmarks as tasks of Inspect, with the same questions and the same scores.

    inspect eval lab/nupa -T tasks=add_integer,max_float --model openai-api/SERVICE/MODEL
    inspect eval lab/two_integers lab/carry_free --model openai-api/SERVICE/MODEL

-T sets the arguments of the functions below. Use them to ask fewer questions; do not use --limit, which keeps only the
shortest numbers. The answer to each question has the token budget that it has in `lab evaluate`: counted with the
model's tokenizer if the model is local, and as one token per character if not. --max-tokens 8192 sets another budget,
for instance for a model that thinks. Models answer greedily, unless --temperature says otherwise.
"""

from pathlib import Path
from typing import Any, Literal

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.scorer import Score, Scorer, Target, grouped, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from lab.benchmarks.results import facts
from lab.config.evaluation import CarryFreeConfig, NupaConfig, TwoIntegersConfig
from lab.engines.engine import Completion
from lab.plugins.shared import VERSION, budget, budgets, completed, figures, open_cached
from lab.text.examples import Prompt

# Inspect puts the package's name before the task's only if it knows that the package is installed. It does not know
# this of an editable install whose distribution (number-lab) has a different name from the package.
_NAMESPACE = "" if {"site-packages", "dist-packages"} & set(Path(__file__).parts) else "lab/"

_MESSAGES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


@task(name=f"{_NAMESPACE}nupa")
def nupa(
    tasks: str | list[str] = "all",
    problems_per_range: int = 25,
    setting: Literal["base", "chat", "api"] = "chat",
    shots: int = 0,
    seed: int = 0,
) -> Task:
    """NUPA (Number Cookbook).

    Args:
        tasks: "all", or one or several task names, such as add_integer.
        problems_per_range: how many problems each task asks in each range of lengths.
        setting: how questions are asked. base is raw text, which needs a provider such as openai-api-completions.
        shots: how many solved examples come before each question.
        seed: the seed from which problems are drawn.
    """
    names = tasks if tasks == "all" or isinstance(tasks, list) else [tasks]
    config = {"tasks": names, "problems_per_range": problems_per_range, "setting": setting, "shots": shots}
    return _task(NupaConfig.model_validate(config), seed)


@task(name=f"{_NAMESPACE}two_integers")
def two_integers(problems: int = 100, seed: int = 0) -> Task:
    """The sum of two integers of 2-30 digits, and nothing but the sum.

    Args:
        problems: how many sums are asked.
        seed: the seed from which problems are drawn.
    """
    return _task(TwoIntegersConfig(problems=problems), seed)


@task(name=f"{_NAMESPACE}carry_free")
def carry_free(problems_per_length: int = 200, language: Literal["zh", "en"] = "zh", seed: int = 0) -> Task:
    """Sums of two integers of 2-22 digits in which no column carries.

    Args:
        problems_per_length: how many sums of each length are asked.
        language: the language of the prompt.
        seed: the seed from which problems are drawn.
    """
    return _task(CarryFreeConfig(problems_per_length=problems_per_length, language=language), seed)


def _task(config: NupaConfig | TwoIntegersConfig | CarryFreeConfig, seed: int) -> Task:
    text = config.model_dump_json()
    benchmark = open_cached(text, seed)
    requests = benchmark.requests()
    samples = []
    for index, request in enumerate(requests):
        question = benchmark.problems[index]
        metadata = {**facts(question), "index": index, "group": request.group}
        samples.append(Sample(_input(request.prompt), target=question.answer, id=index + 1, metadata=metadata))
    by_task = [grouped(mean(), "group", all=False)] if config.kind == "nupa" else []
    return Task(
        samples,
        solver=within_budget(text, seed),
        scorer=readings(text, seed),
        metrics={"*": [mean(), stderr(), *by_task]},
        config=GenerateConfig(temperature=0, max_tokens=budget(benchmark)),
        version=VERSION,
    )


@solver
def within_budget(benchmark: str, seed: int) -> Solver:
    """Generates an answer with the lab's own budget for its question, greedily.

    What the command line says about max_tokens and temperature goes first.

    Args:
        benchmark: the benchmark's config in JSON.
        seed: the seed from which problems are drawn.
    """
    longest = budget(open_cached(benchmark, seed))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model, asked = get_model(), active_generate_config()
        settings = {}
        if asked.max_tokens == longest:
            settings["max_tokens"] = budgets(benchmark, seed, _tokenizer(model))[state.metadata["index"]]
        if asked.temperature == 0 and getattr(model.api, "do_sample", False):
            # transformers refuses temperature 0; to sample from the most likely token alone is the same
            settings |= {"temperature": 1.0, "top_k": 1}
        return await generate(state, **settings)

    return solve


def _tokenizer(model: Model) -> Any:
    """The tokenizer of a local Hugging Face model; None for all others."""
    found = getattr(model.api, "tokenizer", None)
    return found if hasattr(found, "encode") else None


@scorer(metrics={"*": [mean(), stderr()]})
def readings(benchmark: str, seed: int) -> Scorer:
    """Scores with the benchmark's figures as their value, and its full record of the answer as metadata.

    Args:
        benchmark: the benchmark's config in JSON, so that a log contains what is needed to score it again.
        seed: the seed from which problems are drawn.
    """
    opened = open_cached(benchmark, seed)

    async def score(state: TaskState, target: Target) -> Score:
        scored = opened.score(state.metadata["index"], _completion(state.output))
        readings = {name: reading.to_json() for name, reading in scored.readings.items()}
        given = scored.readings["strict"].given
        return Score(value=figures(scored), answer=given, metadata={**readings, **scored.remarks})

    return score


def _input(prompt: Prompt) -> str | list[ChatMessage]:
    if isinstance(prompt, str):
        return prompt
    return [_MESSAGES[message.role](content=message.content) for message in prompt]


def _completion(output: ModelOutput) -> Completion:
    if output.empty:
        return completed(output.completion)
    content = output.message.content
    parts = [] if isinstance(content, str) else content
    reasoning = "".join(part.reasoning for part in parts if isinstance(part, ContentReasoning))
    cut_short = output.stop_reason in ("max_tokens", "model_length")
    return completed(output.completion, reasoning, "length" if cut_short else "stop")
