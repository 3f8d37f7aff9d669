"""What a config of `lab.evaluate` may say: an engine, a benchmark, and how tokens are chosen. No torch."""

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from lab.config.schema import LONGEST, Lengths, ModelConfig, RulesConfig, RunConfig, Section, Tasks
from lab.numbers.sampling import Cell


class LocalEngineConfig(Section):
    """A model in this process."""

    kind: Literal["local"] = "local"
    model: ModelConfig
    """Its name may also be a run directory or a folder of adapters (PEFT)."""
    batch_size: int = Field(default=128, ge=1)
    speculation: int = Field(default=0, ge=0)
    """Tokens drafted for a request and forward pass at most, from what its prompt and its group have said before; no
    answer depends on it, rounding aside. For long answers that repeat themselves, as traces of rules do, on a device
    that computes a few tokens more in the same time; on a CPU they cost what they save."""


class EndpointConfig(Section):
    """Any OpenAI-compatible endpoint."""

    kind: Literal["openai"] = "openai"
    base_url: str
    """The API's root, such as http://127.0.0.1:8000/v1."""
    model: str
    """The name that the endpoint knows the model by."""
    api_key_env: str | None = None
    """Environment variable that holds the key; it is read from there and written nowhere."""
    concurrency: int = Field(default=16, ge=1)
    """Requests in flight at most; fewer for a while after each refusal for asking too often (429)."""
    attempts: int = Field(default=6, ge=1)
    """How often a question is sent, the first time included, before it becomes an api_error record; refusals for asking
    too often (429) do not count."""
    timeout: float = Field(default=600, gt=0)
    """Seconds that one attempt may take."""
    longest_wait: float = Field(default=60, gt=0)
    """Seconds of a wait at most, whatever Retry-After says; up to half of a wait is added at random."""
    patience: float = Field(default=3600, gt=0)
    """Seconds for which every request may be refused for asking too often (429) before the run ends."""

    @field_validator("base_url")
    @classmethod
    def _a_root_without_secrets(cls, url: str) -> str:
        parts = urlsplit(url)
        try:
            valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # a port that is none
            valid = False
        if not valid or any(map(str.isspace, url)):
            raise ValueError("should be the root of an API, such as http://127.0.0.1:8000/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError("should hold no key; name the environment variable that does in engine.api_key_env")
        return url


class VllmConfig(Section):
    """vLLM in this process (the extra `vllm`)."""

    kind: Literal["vllm"] = "vllm"
    model: str
    """A local directory or a name on the model hub."""
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs that share the model."""
    memory_share: float = Field(default=0.9, gt=0, le=1)
    """Of each GPU's memory."""
    max_model_len: int | None = Field(default=None, ge=1)
    """Longest prompt and completion in tokens; the model's own where not given."""
    batch_size: int = Field(default=256, ge=1)
    """Requests between two writes to disk; vLLM forms its own batches within."""


class NupaConfig(Section):
    """The Number Cookbook's test (section 2)."""

    kind: Literal["nupa"] = "nupa"
    tasks: Tasks = "all"
    """Names such as add_integer or max_hard_float; all: the 53 of lab/numbers/tasks.py."""
    lengths: Lengths = Lengths()
    """Lengths to test at; those that a task is never tested at are passed over."""
    problems_per_range: int = Field(default=100, ge=1)
    """Problems of each task in each of its ranges S, M, L, XL, spread over the lengths. Well-learned digits need 20 at
    every length: 120 reach them for tasks of up to 20 digits, 800 for those of up to 100."""
    published: Path | None = None
    """A file in the published layout, {task: {digit: [text]}}, to take the problems from instead; `problems_per_range`
    then bounds how many of each task and range are taken."""
    setting: Literal["base", "chat", "api", "rule_following"] = "base"
    """Raw text to go on from, the model's chat template, that with the paper's system message (A.2), or raw text with
    the rule to follow in front (section 4)."""
    rules: RulesConfig = RulesConfig()
    """Of the setting rule_following."""
    shots: int = Field(default=0, ge=0, le=6)
    """Solved examples before the question, each of another length of S and M, none of the test (A.3.1: 5)."""
    surplus_tokens: int | None = Field(default=None, ge=0)
    """Budget beyond the longest answer of a task and length: 8 in the base setting, 64 in the others; a model that
    thinks before it answers needs thousands."""

    def cells(self) -> list[Cell]:
        return self.lengths.tested(self.tasks)

    @model_validator(mode="after")
    def _something_to_measure(self) -> Self:
        self.lengths.check_tested(self.tasks, "lengths", "tasks")
        if self.shots and self.setting == "rule_following":
            raise ValueError("a rule is followed without solved examples: shots should be 0")
        self.rules.check_that_followed(self.setting == "rule_following", "setting")
        return self


class TwoIntegersConfig(Section):
    """The sum of two integers of 2-30 digits, nothing but the sum."""

    kind: Literal["two_integers"] = "two_integers"
    problems: int = Field(default=100, ge=1)
    max_tokens: int = Field(default=256, ge=1)
    """Budget of an answer; a model that thinks before it answers needs thousands."""


class CarryFreeConfig(Section):
    """Sums of two integers of 2-22 digits in which no column carries."""

    kind: Literal["carry_free"] = "carry_free"
    lengths: tuple[int, int] = (2, 22)
    """Numbers of digits, both ends included."""
    problems_per_length: int = Field(default=200, ge=1)
    language: Literal["zh", "en"] = "zh"
    """zh is the original prompt; en is its English twin."""
    max_tokens: int = Field(default=2048, ge=1)
    """Budget of an answer with its working."""

    @field_validator("lengths")
    @classmethod
    def _in_range(cls, bounds: tuple[int, int]) -> tuple[int, int]:
        if not 1 < bounds[0] <= bounds[1] <= LONGEST:
            raise ValueError(f"should be [shortest, longest], from 2 digits to {LONGEST}")
        return bounds


class SamplingConfig(Section):
    """How a token is chosen; the default is greedy, the paper's setting is temperature 0.6, top_p 0.9."""

    temperature: float = Field(default=0.0, ge=0)
    """Some endpoints refuse 0 for models that think; they take 1."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    seed: int | None = Field(default=None, ge=0, lt=2**32)
    """Of the draws alone; the run's own where not given."""


FREE_ON_RESUMING = (
    "engine.base_url",
    "engine.api_key_env",
    "engine.concurrency",
    "engine.attempts",
    "engine.timeout",
    "engine.longest_wait",
    "engine.patience",
)
"""How an endpoint is reached and how patiently: what a resumed run may do otherwise, as no answer depends on it."""


class EvaluateConfig(RunConfig):
    COMMAND = "evaluate"
    SMOKE = ("limit=4",)

    engine: Annotated[LocalEngineConfig | EndpointConfig | VllmConfig, Field(discriminator="kind")]
    benchmark: Annotated[NupaConfig | TwoIntegersConfig | CarryFreeConfig, Field(discriminator="kind")]
    sampling: SamplingConfig = SamplingConfig()
    limit: int | None = Field(default=None, ge=1)
    """At most this many questions, spread evenly over the benchmark."""
