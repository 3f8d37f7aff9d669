import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, model_validator

from lab.config import schema
from lab.config.describing import help_text
from lab.config.loading import dump, load, renewed
from lab.errors import ConfigError


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Pretrained(Section):
    kind: Literal["pretrained"] = "pretrained"
    name: str
    """A hub name or a folder."""
    dtype: Literal["bf16", "fp32"] = "bf16"


class Scratch(Section):
    kind: Literal["scratch"] = "scratch"
    layers: int = Field(default=2, ge=1)
    """How many blocks."""
    width: int = 64


Model = Annotated[Pretrained | Scratch, Field(discriminator="kind")]


class Training(Section):
    max_steps: int = Field(default=100, ge=1)
    """Optimizer steps."""
    learning_rate: float | Literal["auto"] = 1e-3
    warmup: int = 0

    @model_validator(mode="after")
    def warmup_ends(self) -> "Training":
        if self.warmup > self.max_steps:
            raise ValueError(f"warmup {self.warmup} is longer than max_steps {self.max_steps}")
        return self


class Config(Section):
    name: str = "x"
    """The run's name."""
    resume: bool = False
    model: Model = Scratch()
    """What is trained."""
    draft: Model | None = None
    training: Training = Training(max_steps=10)
    tasks: tuple[Literal["add_integer", "add_float"], ...] = ("add_integer",)
    rungs: list[Model] = []
    weights: dict[str, float] = {}
    folder: Path = Path("checkpoints")
    pair: tuple[int, int] = (0, 1)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write files by name into the current directory; gives the path of the last."""
    monkeypatch.chdir(tmp_path)

    def write(**files: str) -> Path:
        for name, text in files.items():
            Path(f"{name}.yaml").write_text(text)
        return Path(f"{list(files)[-1]}.yaml")

    return write


def problems(path: Path, *overrides: str, schema: type[BaseModel] = Config) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load(schema, path, overrides)
    return str(error.value).splitlines()


# Reading


def test_what_a_file_does_not_say_keeps_its_default(write):
    assert load(Config, write(c="{}"), []) == Config()


@pytest.mark.parametrize("text", ["1e-4", "2e5", "1E-3", "-1.5e+3", ".5", "1.", ".inf", "-.INF", "3"])
def test_a_number_is_a_number_with_or_without_a_point(write, text):
    config = load(Config, write(c=f"weights: {{a: {text}}}"), [])
    assert config.weights["a"] == float(text.lower().replace(".inf", "inf"))


@pytest.mark.parametrize("text", ["no", "off", "y", "1:30", "2024-01-01", "0x10", "1_000", "<<", "1e", "+", "."])
def test_what_only_yaml_1_1_takes_for_something_else_is_a_string(write, text):
    assert load(Config, write(c=f"name: {text}"), []).name == text


@pytest.mark.parametrize("text", ["yes", "on", "1", '"true"', "1.0"])
def test_only_true_and_false_are_booleans(write, text):
    [line] = problems(write(c=f"resume: {text}"))
    assert "should be a valid boolean" in line


def test_true_is_not_a_number_and_a_whole_float_is_not_an_integer(write):
    lines = problems(write(c="training:\n  max_steps: true\n  warmup: 1e2"))
    assert lines == [
        "c.yaml:2: training.max_steps = true: should be a valid integer",
        "c.yaml:3: training.warmup = 100.0: should be a valid integer",
    ]


def test_a_duplicate_key_is_refused_with_file_and_line(write):
    [line] = problems(write(c="name: a\ntraining:\n  warmup: 1\n  warmup: 2\n"))
    assert line == "c.yaml:4: key 'warmup' was already given at c.yaml:3"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1\nb: 2", "c.yaml:2: not YAML: expected ',' or ']', but got ':'"),
        ("a: 1\n\tb: 2", "c.yaml:2: not YAML: found character '\\t' that cannot start any token"),
        ("a: 1\nb: \x00", "c.yaml:2: not YAML: special characters are not allowed"),
        ("a: 1\n---\nb: 2", "c.yaml:2: not YAML: but found another document"),
        ("a: *b", "c.yaml:1: not YAML: found undefined alias 'b'"),
        ("a: &b [*b]", "c.yaml:1: nested too deeply, or inside itself"),
        ("a: !!python/name:os.system x", 'c.yaml:1: "x" cannot be read as tag:yaml.org,2002:python/name:os.system'),
        ("a: !!int x", 'c.yaml:1: "x" cannot be read as tag:yaml.org,2002:int'),
        ("[a]: 1", "c.yaml:1: a key must be a word, not a list or a mapping"),
        ("- a\n- b", 'c.yaml:1: ["a", "b"]: a config must be a mapping of keys to values'),
        ("", "c.yaml:1: null: a config must be a mapping of keys to values"),
    ],
)
def test_what_is_not_a_config_is_an_error_of_one_line(write, text, line):
    assert problems(write(c=text)) == [line]


def test_a_missing_file_a_folder_and_a_binary_are_errors_of_one_line(write, tmp_path):
    write(c="{}")
    Path("binary.yaml").write_bytes(b"\xff\xfe\x00")
    assert problems(Path("none.yaml")) == ["none.yaml: No such file or directory"]
    assert problems(tmp_path) == [f"{tmp_path}: Is a directory"]
    assert problems(Path("binary.yaml")) == ["binary.yaml: not UTF-8 text"]


def test_an_anchor_may_be_used_again(write):
    config = load(Config, write(c="rungs:\n  - &a {kind: scratch, layers: 3}\n  - *a"), [])
    assert config.rungs == [Scratch(layers=3), Scratch(layers=3)]


# Extending and merging


def test_a_file_lies_over_the_file_it_extends_and_arguments_over_both(write):
    path = write(
        base="name: base\ntraining: {max_steps: 1, warmup: 1}\ntasks: [add_integer, add_float]",
        middle="extends: base.yaml\ntraining: {max_steps: 2}",
        top="extends: middle.yaml\ntasks: [add_float]\ntraining: {learning_rate: 2e-4}",
    )
    assert load(Config, path, ["training.warmup=2", "name=new"]) == Config(
        name="new", training=Training(max_steps=2, warmup=2, learning_rate=2e-4), tasks=("add_float",)
    )


def test_keys_that_do_not_fit_together_are_reported_where_the_user_wrote_one_of_them(write):
    path = write(base="training: {max_steps: 9, warmup: 8}", top="extends: base.yaml\ntraining:\n  max_steps: 7")
    told = "training: warmup 8 is longer than max_steps 7"
    assert problems(path) == [f"top.yaml:3: {told}"]
    assert problems(path, "training.learning_rate=1") == [f"top.yaml:3: {told}"]
    set_here = "training.max_steps=7"
    assert problems(Path("base.yaml"), set_here, "training.learning_rate=1") == [f"argument {set_here!r}: {told}"]


def test_extends_is_relative_to_the_file_that_says_it(write):
    path = write(base="name: base", top="extends: deep/middle.yaml")
    Path("deep").mkdir()
    Path("deep/middle.yaml").write_text("extends: ../base.yaml")
    assert load(Config, path, []).name == "base"


def test_files_that_extend_each_other_are_an_error(write):
    path = write(a="extends: b.yaml", b="name: x\nextends: a.yaml")
    assert problems(path) == ["a.yaml:1: extends goes in a circle: b.yaml -> a.yaml -> b.yaml"]
    assert problems(write(c="extends: c.yaml")) == ["c.yaml:1: extends goes in a circle: c.yaml -> c.yaml"]


def test_extending_no_file_is_an_error_where_it_is_said(write):
    assert problems(write(a="\nextends: none.yaml")) == ["a.yaml:2: extends none.yaml, which is not a file"]


def test_a_changed_kind_replaces_its_block(write):
    base = "model: {kind: scratch, layers: 3, width: 8}"
    path = write(base=base, top="extends: base.yaml\nmodel: {kind: pretrained, name: a}")
    assert load(Config, path, []).model == Pretrained(name="a")
    assert load(Config, path, ["model.kind=scratch"]).model == Scratch()


def test_the_same_kind_said_again_merges(write):
    path = write(base="model: {kind: scratch, layers: 3}", top="extends: base.yaml\nmodel: {kind: scratch, width: 8}")
    assert load(Config, path, ["model.kind=scratch"]).model == Scratch(layers=3, width=8)


@pytest.mark.parametrize("order", [1, -1])
def test_overrides_of_a_kind_and_its_keys_come_in_any_order(write, order):
    path = write(c="model: {kind: pretrained, name: a}")
    overrides = ["model.kind=scratch", "model.layers=5"][::order]
    assert load(Config, path, overrides).model == Scratch(layers=5)


def test_an_override_is_a_yaml_value(write):
    overrides = ["tasks=[add_float, add_integer]", "resume=true", "name=a=b", "draft=", "weights.a=1e-4", "name=a=b"]
    config = load(Config, write(c="draft: {kind: scratch}"), overrides)
    assert config == Config(tasks=("add_float", "add_integer"), resume=True, name="a=b", weights={"a": 1e-4})


@pytest.mark.parametrize("text", ["resume", "=1", "a..b=1", ".a=1", "a.=1", ""])
def test_an_override_that_is_not_key_and_value_is_an_error(write, text):
    assert problems(write(c="{}"), text) == [f"argument {text!r}: an override is written key.sub=value"]


def test_an_override_that_is_not_yaml_is_an_error(write):
    [line] = problems(write(c="{}"), "tasks=[a")
    assert line.startswith("argument 'tasks=[a': not YAML: ")


# Errors


def test_a_misspelled_key_is_named_with_a_suggestion(write):
    [line] = problems(write(c="name: x\ntraining:\n  max_step: 5\n"))
    assert line == (
        "c.yaml:3: training.max_step = 5: no such key, did you mean max_steps? "
        "Keys here: max_steps, learning_rate, warmup"
    )


def test_a_misplaced_key_is_told_its_place(write):
    [line] = problems(write(c="{}"), "max_steps=5")
    assert line.startswith("argument 'max_steps=5': max_steps = 5: no such key, did you mean training.max_steps?")


def test_a_misspelled_word_is_named_with_a_suggestion(write):
    [line] = problems(write(c="tasks:\n  - add_integer\n  - add_flot\n"))
    expected = "should be 'add_integer' or 'add_float', did you mean add_float?"
    assert line == f'c.yaml:3: tasks.1 = "add_flot": {expected}'


def test_keys_of_a_union_carry_no_tag(write):
    path = write(c="model:\n  kind: scratch\n  layers: 0\ndraft:\n  kind: pretrained\n  dtype: fp23\n  layers: 1")
    assert problems(path) == [
        "c.yaml:3: model.layers = 0: should be greater than or equal to 1",
        "c.yaml:4: draft.name: missing, should be string",
        "c.yaml:6: draft.dtype = \"fp23\": should be 'bf16' or 'fp32', did you mean fp32?",
        "c.yaml:7: draft.layers = 1: no such key, did you mean model.layers? Keys here: kind, name, dtype",
    ]


def test_an_unknown_or_missing_kind_is_told_the_kinds(write):
    path = write(c="model:\n  kind: scrach\nrungs:\n  - {kind: scratch}\n  - layers: 2\n")
    assert problems(path) == [
        "c.yaml:2: model.kind = \"scrach\": should be 'pretrained', 'scratch', did you mean scratch?",
        "c.yaml:5: rungs.1.kind: missing, should be pretrained | scratch",
    ]


def test_a_plain_union_complains_in_one_line(write):
    [line] = problems(write(c="{}"), "training.learning_rate=fast")
    assert line == (
        "argument 'training.learning_rate=fast': training.learning_rate = \"fast\": "
        "should be a valid number or should be 'auto'"
    )


def test_what_is_missing_at_the_top_is_missing_from_the_named_file(write):
    class Strict(Section):
        seed: int
        name: str = ""

    path = write(base="name: x", top="extends: base.yaml")
    assert problems(path, "name=y", schema=Strict) == ["top.yaml: seed: missing, should be integer"]


def test_all_problems_are_told_at_once_each_with_its_own_origin(write):
    path = write(base="\nname: 1\ntraining:\n  warmup: x", top="extends: base.yaml\nmodel: 3\npair: [1]")
    lines = problems(path, "weights.a=b", "folder=1")
    assert [line.partition(" = ")[0] for line in lines] == [
        "base.yaml:2: name",
        "top.yaml:2: model",
        "base.yaml:4: training.warmup",
        "argument 'weights.a=b': weights.a",
        "argument 'folder=1': folder",
        "top.yaml:3: pair.1: missing, should be any",
    ]


def test_a_rule_between_keys_names_their_section(write):
    [line] = problems(write(c="name: x\ntraining:\n  warmup: 200\n"))
    assert line == "c.yaml:3: training: warmup 200 is longer than max_steps 100"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_config_or_a_config_error_of_short_lines(tmp_path, text):
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    lines: list[str] = []
    try:
        load(Config, path, [])
    except ConfigError as error:
        lines = str(error).split("\n")
    assert all(line.startswith(str(path)) for line in lines)


words = st.sampled_from([*Config.model_fields, "kind", "scratch", "pretrained", "layers", "warmup"])
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(words, trees))
def test_any_tree_is_a_config_or_a_line_for_each_problem(tmp_path, tree):
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps(tree))
    lines: list[str] = []
    try:
        load(Config, path, [])
    except ConfigError as error:
        lines = str(error).split("\n")
    assert all(line.startswith(f"{path}:1: ") for line in lines)


# Writing

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
tricky = st.sampled_from(
    ["1e-4", "08", "no", "null", "~", "", "1:30", "0x1", "=", "<<", "2024-01-01", ".inf", "- a", "\x85", "a\nb"]
)
models = st.one_of(
    st.builds(Pretrained, name=texts | tricky, dtype=st.sampled_from(["bf16", "fp32"])),
    st.builds(Scratch, layers=st.integers(min_value=1), width=st.integers()),
)
configs = st.builds(
    Config,
    name=texts | tricky,
    resume=st.booleans(),
    model=models,
    draft=st.none() | models,
    training=st.builds(Training, learning_rate=st.floats(allow_nan=False) | st.just("auto")),
    tasks=st.lists(st.sampled_from(["add_integer", "add_float"])).map(tuple),
    rungs=st.lists(models, max_size=2),
    weights=st.dictionaries(texts | tricky, st.floats(allow_nan=False), max_size=3),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(configs)
def test_a_dumped_config_loads_as_itself(tmp_path, config):
    path = tmp_path / "resolved.yaml"
    path.write_text(dump(config), encoding="utf-8", newline="")
    assert load(Config, path, []) == config


def test_a_dump_keeps_the_order_of_the_schema():
    keys = [line.partition(":")[0] for line in dump(Config()).splitlines() if line[0].isalpha()]
    assert keys == list(Config.model_fields)


# The command line


def test_help_names_every_key_with_type_default_and_docstring():
    lines = help_text(Config).splitlines()
    for expected in [
        'name: string = "x"',
        "    The run's name.",
        'model: mapping of kind pretrained | scratch = {"kind": "scratch"}',
        "    What is trained.",
        "model.name: string (required) [model.kind=pretrained]",
        "    A hub name or a folder.",
        'model.dtype: "bf16" | "fp32" = "bf16" [model.kind=pretrained]',
        "model.layers: integer >= 1 = 2 [model.kind=scratch]",
        "draft: mapping of kind pretrained | scratch | null = null",
        "draft.width: integer = 64 [draft.kind=scratch]",
        'training: mapping = {"max_steps": 10}',
        "training.max_steps: integer >= 1 = 100",
        'training.learning_rate: number | "auto" = 0.001',
        'tasks: list of "add_integer" | "add_float" = ["add_integer"]',
        "rungs.*.layers: integer >= 1 = 2 [rungs.*.kind=scratch]",
        "weights: mapping of number = {}",
    ]:
        assert expected in lines


def test_an_earlier_config_is_renewed_with_the_defaults_of_later_keys(write):
    class Later(Config):
        added: int = 3

    before = load(Config, write(c="name: a"), [])
    assert renewed(Later, dump(before)) == dump(Later(**before.model_dump()))
    assert renewed(Config, dump(before)) == dump(before)
    for odd in ("name: [", "other: 1\n"):
        assert renewed(Later, odd) == odd


def test_reading_configs_imports_no_torch():
    script = "import sys, lab.config.loading, lab.runs; assert not {'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


class Pair(schema.Section):
    small: int = 1
    large: int = 2

    @model_validator(mode="after")
    def _in_order(self) -> "Pair":
        if self.small >= self.large:
            raise schema.wrong("small large", f"small={self.small} should be below large={self.large}")
        return self


class Pairs(schema.Section):
    pair: Pair = Pair()
    rate: schema.Rate = 1.0


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], "FILE:2: pair.small: small=3 should be below large=2"),
        (["pair.large=1"], "argument 'pair.large=1': pair.large: small=3 should be below large=1"),
        (["pair.small=7"], "argument 'pair.small=7': pair.small: small=7 should be below large=2"),
    ],
)
def test_keys_that_are_wrong_together_are_told_by_the_one_that_an_argument_gave(tmp_path, overrides, message):
    path = tmp_path / "pairs.yaml"
    path.write_text("pair:\n  small: 3\n  large: 2\n")
    with pytest.raises(ConfigError) as raised:
        load(Pairs, path, overrides)
    assert str(raised.value) == message.replace("FILE", str(path))


@pytest.mark.parametrize("rate", [".inf", ".nan", "1e38", "0"])
def test_a_rate_is_a_finite_number_in_reason(tmp_path, rate):
    path = tmp_path / "pairs.yaml"
    path.write_text(f"rate: {rate}\n")
    with pytest.raises(ConfigError, match=r"rate = .*should be"):
        load(Pairs, path)
