"""The config of `lab.evaluate`: an engine, a benchmark, and how tokens are chosen. Does not import torch."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator, model_validator

from lab.config.schema import LONGEST, Lengths, ModelConfig, RulesConfig, RunConfig, Section, Tasks, wrong
from lab.numbers.sampling import Cell


class LocalEngineConfig(Section):
    """A model in this process."""

    kind: Literal["local"] = "local"
    model: ModelConfig
    """Its name may also be a run directory, a folder of adapters (PEFT), or a model of the zoo (`lab list models`)."""
    batch_size: int = Field(default=128, ge=1)
    """Number of requests in a batch. Larger batches are faster, especially on a CPU (finding F-086), and take more
    memory."""
    parts: dict[str, dict[str, Any] | None] = Field(default={})
    """Keys of parts that are different in this evaluation, by kinds, such as `{far_digits: {at_most: 5}}`. A part
    without weights may be added, or removed with null (`lab list parts`)."""


class EndpointConfig(Section):
    """Any OpenAI-compatible endpoint, such as the server of vLLM (`vllm serve`)."""

    kind: Literal["openai"] = "openai"
    base_url: str
    """The root of the API, such as http://127.0.0.1:8000/v1."""
    model: str
    """The name by which the endpoint knows the model."""
    api_key_env: str | None = None
    """The name of the environment variable that holds the key. The key itself is never stored or printed."""
    concurrency: int = Field(default=16, ge=1)
    """Maximum number of requests in flight. After each rate limit error (429), it is lowered for a while."""
    attempts: int = Field(default=6, ge=1)
    """How many times a question is sent before it is recorded as an api_error. Rate limit errors (429) do not count."""
    timeout: float = Field(default=600, gt=0)
    """Time limit of one attempt, in seconds."""
    longest_wait: float = Field(default=60, gt=0)
    """The longest wait between attempts, in seconds. If the server asks for a longer one (Retry-After), it is shortened
    to this; up to half of the wait is then added at random. If the server asks for none, waits are random, and grow up
    to this limit."""
    patience: float = Field(default=3600, gt=0)
    """The run ends if all requests get rate limit errors (429) for this many seconds."""

    @field_validator("base_url")
    @classmethod
    def _a_root_without_secrets(cls, url: str) -> str:
        parts = urlsplit(url)
        try:
            valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # an invalid port
            valid = False
        if not valid or any(map(str.isspace, url)):
            raise ValueError("should be the root of an API, such as http://127.0.0.1:8000/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError("should contain no key; name an environment variable that holds it in engine.api_key_env")
        return url


class NupaConfig(Section):
    """The Number Cookbook's test (section 2)."""

    kind: Literal["nupa"] = "nupa"
    tasks: Tasks = "all"
    """Names such as add_integer or max_hard_float; all: the 53 of lab/numbers/tasks.py."""
    lengths: Lengths = Lengths()
    """Lengths to test at. A task skips lengths at which it is never tested."""
    problems_per_range: int = Field(default=100, ge=1)
    """Number of problems of each task in each of its ranges S, M, L and XL, spread over the lengths of the range. The
    metric "well-learned digits" needs 20 problems at every length: 120 per range are enough for tasks of up to 20
    digits, 800 for tasks of up to 100."""
    published: Path | None = None
    """A file in the published layout, {task: {digit: [text]}}. If given, problems are taken from it, at most
    `problems_per_range` for each task and range."""
    setting: Literal["base", "chat", "api", "rule_following"] = "base"
    """How a question is asked. base: raw text that the model continues. chat: the model's chat template. api: the chat
    template with the paper's system message (A.2). rule_following: raw text that begins with the rule to follow
    (section 4)."""
    rules: RulesConfig = RulesConfig()
    """Which rules to follow, if setting is rule_following."""
    shots: int = Field(default=0, ge=0, le=6)
    """Number of solved examples before the question (5 in A.3.1). Their lengths are spread over the ranges S and M.
    None of them is a test problem."""
    surplus_tokens: int | None = Field(default=None, ge=0)
    """How many tokens an answer may have beyond the longest right answer of its task and length. The default is 8 in
    the base setting and with rules.detail=answer, and 64 otherwise; a model that thinks before it answers needs
    thousands. A run says how many of its answers were cut off."""

    def cells(self) -> list[Cell]:
        return self.lengths.tested(self.tasks)

    @model_validator(mode="after")
    def _something_to_measure(self) -> Self:
        self.lengths.check_tested(self.tasks, "lengths", "tasks")
        if self.shots and self.setting == "rule_following":
            raise ValueError("setting=rule_following takes no solved examples: shots should be 0")
        self.rules.check_that_followed(self.setting == "rule_following", "setting")
        return self


class TwoIntegersConfig(Section):
    """The sum of two integers of 2-30 digits; the answer should be the sum alone."""

    kind: Literal["two_integers"] = "two_integers"
    problems: int = Field(default=100, ge=1)
    max_tokens: int = Field(default=256, ge=1)
    """Maximum number of tokens in an answer; a model that thinks before it answers needs thousands."""


class CarryFreeConfig(Section):
    """Sums of two integers of 2-22 digits in which no column carries."""

    kind: Literal["carry_free"] = "carry_free"
    lengths: tuple[int, int] = (2, 22)
    """The smallest and the largest number of digits, both included."""
    problems_per_length: int = Field(default=200, ge=1)
    language: Literal["zh", "en"] = "zh"
    """zh is the original prompt; en is its English translation."""
    max_tokens: int = Field(default=2048, ge=1)
    """Maximum number of tokens in an answer, including its working."""

    @field_validator("lengths")
    @classmethod
    def _in_range(cls, bounds: tuple[int, int]) -> tuple[int, int]:
        if not 1 < bounds[0] <= bounds[1] <= LONGEST:
            raise ValueError(f"should be [shortest, longest], from 2 digits to {LONGEST}")
        return bounds


class OwnQuestionsConfig(Section):
    """Questions of your own, from a Python file (lab/benchmarks/own_questions.py shows one)."""

    kind: Literal["own_questions"] = "own_questions"
    file: Path
    """A Python file with a function questions(seed), which yields pairs of a question and its answer. It may also have
    a function read(text), which extracts the answer from what the model wrote."""
    setting: Literal["base", "chat"] = "chat"
    """How a question is asked. base: raw text that the model continues. chat: the model's chat template."""
    max_tokens: int = Field(default=256, ge=1)
    """Maximum number of tokens in an answer."""


BenchmarkConfig: TypeAlias = NupaConfig | TwoIntegersConfig | CarryFreeConfig | OwnQuestionsConfig


_COLDEST = 1e-3
"""The lowest temperature: divided by a lower one, logits could overflow in float32."""


class SamplingConfig(Section):
    """How a token is chosen. The default is greedy; the paper uses temperature 0.6 and top_p 0.9. An endpoint is told
    nothing of what is null, for models that refuse the parameter."""

    temperature: float | None = Field(default=0.0, ge=0)
    """0 is greedy. null leaves it to the endpoint: some models that think refuse 0, or any temperature."""
    top_p: float | None = Field(default=1.0, gt=0, le=1)
    seed: Annotated[int, Field(ge=0, lt=2**32)] | Literal["run"] | None = "run"
    """The seed of the sampling. run: the run's seed, if temperature is above 0. null: an endpoint is sent none; for a
    local model, the same as run."""

    @model_validator(mode="before")
    @classmethod
    def _of_an_earlier_version(cls, read: Any) -> Any:
        """Earlier versions wrote seed: null in every config. Greedy runs of theirs are resumed as before."""
        if isinstance(read, dict) and read.get("temperature", 0) == 0 and read.get("seed", "run") is None:
            return {**read, "seed": "run"}
        return read

    @model_validator(mode="after")
    def _chance(self) -> Self:
        if self.temperature is None:
            return self
        if 0 < self.temperature < _COLDEST:
            raise ValueError(f"temperature={self.temperature} should be 0, which is greedy, or {_COLDEST} or more")
        if not self.temperature and (self.top_p not in (None, 1) or isinstance(self.seed, int)):
            raise ValueError("top_p and seed need a temperature above 0: greedy answers are not drawn")
        return self


class EvaluateConfig(RunConfig):
    COMMAND = "evaluate"
    SMOKE = ("limit=4",)
    FREE = (
        *("engine.base_url", "engine.api_key_env", "engine.concurrency", "engine.attempts"),
        *("engine.timeout", "engine.longest_wait", "engine.patience"),
    )

    engine: Annotated[LocalEngineConfig | EndpointConfig, Field(discriminator="kind")]
    benchmark: Annotated[BenchmarkConfig, Field(discriminator="kind")]
    sampling: SamplingConfig = SamplingConfig()
    limit: int | None = Field(default=None, ge=1)
    """Asks at most this many questions, spread evenly over the benchmark."""

    @field_validator("sampling")
    @classmethod
    def _seed_of_a_local_model(cls, sampling: SamplingConfig, info: ValidationInfo) -> SamplingConfig:
        """Without an endpoint, seed: null means what it meant in every config of earlier versions."""
        local = "engine" in info.data and not isinstance(info.data["engine"], EndpointConfig)
        return sampling.model_copy(update={"seed": "run"}) if local and sampling.seed is None else sampling

    @model_validator(mode="after")
    def _left_to_the_endpoint(self) -> Self:
        if self.sampling.temperature is None and not isinstance(self.engine, EndpointConfig):
            what = f"null leaves temperature to an endpoint; engine.kind={self.engine.kind} needs a value"
            raise wrong("sampling.temperature engine.kind", what)
        return self

    @property
    def model_name(self) -> str:
        """The name of the model that is asked."""
        return self.engine.model.name if isinstance(self.engine, LocalEngineConfig) else self.engine.model
