"""What a declared adder's file may say, and the one line with a place that everything else gets."""

import copy
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.adder import main
from lab.adders.count import count
from lab.adders.spec import check, load
from lab.errors import TaskError

ROOT = Path(__file__).parents[2]
LEAST = {
    "numbers": {"e": [[0.1 * v, 1.0] for v in range(12)], "q": [[1.0, 2.0], [3.0, 4.0]], "g": [1.0, 1.0]},
    "model": {
        "embedding": "e",
        "rope": {"period": 12},
        "layers": [
            {"attention": {"q": "q", "k": "q", "norm": {"kind": "rms", "gain": "g"}}, "ffn": {"act": "silu", "up": "q"}}
        ],
        "head": "e",
    },
    "prompt": ["a9..0", 10, "b9..0", 11],
    "answer": ["s10..0"],
}


def changed(path: str, value: object) -> dict:
    """LEAST with one value put in; a path is dotted, and numbers are places in lists."""
    adder = copy.deepcopy(LEAST)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    inner: object = adder
    for part in way:
        inner = inner[part]  # type: ignore[index]
    inner[last] = value  # type: ignore[index]
    return adder


def refusal(path: Path) -> str:
    with pytest.raises(TaskError) as refused:
        load(path)
    (line,) = str(refused.value).splitlines()
    assert line.startswith(str(path))
    return line.removeprefix(str(path)).removeprefix(": ")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("numbers.e.3.1", "x", "numbers.e.3.1: 'x' is not a number"),
        ("numbers.e.3.1", True, "numbers.e.3.1: 'True' is not a number"),
        ("numbers.e.3.1", None, "numbers.e.3.1: 'None' is not a number"),
        ("numbers.e.3.1", float("nan"), "numbers.e.3.1: NaN is not a finite number"),
        ("numbers.e.3.1", float("inf"), "numbers.e.3.1: inf is not a finite number"),
        ("numbers.e.3.1", 1e39, "numbers.e.3.1: 1e+39 is not a finite number in its precision"),
        ("numbers.e.3.1", 10**400, "numbers.e.3.1: 1000000"),
        ("numbers.e.3", [1.0], "numbers.e: should be a number, a list of numbers, or a list of rows of the same length"),  # noqa: E501
        ("numbers.e", [[[1.0]]], "numbers.e: should be a number"),
        ("numbers.e", [0, [0]], "numbers.e: should be a number, a list of numbers, or a list of rows of the same length"),  # noqa: E501
        ("numbers.e", [], "numbers.e: should be a number"),
        ("numbers.e", {"a": 1}, "numbers.e: \"{'a': 1}\" is not a number"),
        ("numbers.two words", 1, "numbers.two words"),
        ("model.head", "f", "model.head.w: no numbers 'f'; there are e, q, g"),
        ("model.head", "q", "model.head: has rows for 2 tokens, and the embedding for 12"),
        ("model.head", 3, "model.head.w: is a number; should be a matrix"),
        ("model.head", {"nearest": "q"}, "model.head.nearest: is 2 x 2; should be 12 x 2"),
        ("model.embedding", "e.T", "token ids should be below 2"),
        ("model.embedding", "e.t", "model.embedding: 'e.t': should be the name of a table"),
        ("model.embedding", {"ramp": "g"}, "model.embedding.ramp: a row of 2: should be 1 number"),
        ("model.embedding", {"ramp": 1}, "vocabulary: missing"),
        ("model.embedding", {"spiral": 1}, "should be a number, a list of numbers"),
        ("model.embedding", ["e", "e"], "model.embedding: 12 x 2 times 12 x 2 is not a product of matrices"),
        ("model.embedding", {"join": ["e", "g"]}, "cannot be rows of one table"),
        ("model.layers.0.attention.q", "e.T", "model.layers.0.attention.q: is 2 x 12, which takes 12 numbers; it gets 2"),  # noqa: E501
        ("model.layers.0.attention.heads", 10**9, "model.layers.0.attention.heads = 1000000000: should be less than"),
        ("model.layers.0.attention.heads", 0, "model.layers.0.attention.heads = 0"),
        ("model.layers.0.attention.heads", 2, "rope turns pairs"),
        ("model.layers.0.attention.kv_heads", 3, "model.layers.0.attention.kv_heads: 3: should divide heads"),
        ("model.layers.0.attention.o", "g", "model.layers.0.attention.o.w: is a row of 2; should be a matrix"),
        ("model.layers.0.attention.mask", "causal", "model.layers.0.attention.mask = \"causal\": no such key"),
        ("model.layers.0.attention.norm.gain", [1, 2, 3], "norm.gain: is a row of 3; should be a row of 2 or a number"),
        ("model.layers.0.ffn.act", "step", "model.layers.0.ffn.act = \"step\": should be 'silu'"),
        ("model.layers.0.ffn.down", [[1, 2]], "gives 1 numbers, and the stream has 2; residual: 0 replaces the stream"),
        ("model.layers.0.conv", {}, "model.layers.0.conv = {}: no such key. Keys here: attention, ffn"),
        ("model.layers.0", "attention", "model.layers.0 = \"attention\": "),
        ("model.layers", 3, "model.layers"),
        ("model.times", 10**9, "model.times = 1000000000: should be less than or equal to 64"),
        ("model.positions", [[1.0, 2.0]], "model.positions: is 1 x 2; should have 32 rows or more, of 2"),
        ("model.rope", {"period": 12, "theta": 1}, "model.rope: should have either period or theta"),
        ("model.code", "import os", "model.code = \"import os\": no such key"),
        ("prompt", "a9..0", 'prompt = "a9..0": should be a list such as ["a9..0", 10, "b9..0"]'),
        ("prompt", ["a9..0"], "digit b0 is missing"),
        ("prompt", ["a9..0", "b9..0", *[0] * 16], "36 tokens; at most 35"),
        ("prompt", ["a9..0", "b9..0", "s0"], "'s0': should be digits such as a9..0 or b9..0"),
        ("prompt", ["a9..0", "b9..0", 12], "token ids should be below 12"),
        ("prompt", ["a9..0", "b9..0", -1], "'-1': should be digits"),
        ("answer", ["s9..0"], "digit s10 is missing"),
        ("answer", ["s10..0", "s3"], "a digit of the sum is written twice"),
        ("answer", ["s10..0", *[0] * 20], "31 tokens; at most 30"),
        ("digits", [0] * 10, "digits differ"),
        ("vocabulary", 300, "vocabulary = 300: should be less than or equal to 256"),
        ("secret", 1, "secret = 1: no such key"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(tmp_path, path, value, said):
    file = tmp_path / "adder.json"
    file.write_text(json.dumps(changed(path, value)))
    assert said in refusal(file)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.json", "{", ":1: not JSON"),
        ("x.json", "[1, 2]", "(the whole file): should be a mapping"),
        ("x.json", '{\n"numbers": 1,\n"numbers": 2}', "key 'numbers' was already given"),
        ("x.json", "[" * 200_000, "nested too deeply"),
        ("x.json", '{"numbers":' * 50_000, "nested too deeply"),
        ("x.json", '"\\ud800"', "(the whole file)"),
        ("x.json", "1" * 5000, "(the whole file)"),
        ("x.yaml", "a: &x [1]\nb: *x", ":1: anchors and aliases are not allowed"),
        ("x.yaml", "a: &x\n  b: *x", ":1: anchors and aliases are not allowed"),
        ("x.yaml", "numbers: 1\nnumbers: 2", ":2: key 'numbers' was already given"),
        ("x.yaml", "a: !!python/object/apply:os.system [ls]", ":1: tags are not allowed"),
        ("x.yaml", "[" * 100_000, "nest"),
        ("x.yaml", "[" * 50 + "]" * 50, ":1: nested too deeply"),
        ("x.yaml", "a: 1\n---\nb: 2", ":2: not YAML: but found another document"),
        ("x.yaml", "a: [1", "not YAML"),
        ("x.yaml", "? [1]\n: 2", ":1: a key must be a word"),
        ("x.yaml", "", "(the whole file)"),
        ("x.txt", "", "an adder is a file .json, .yaml, .yml"),
        ("x.json", None, "there is no such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line_with_its_place(tmp_path, name, text, said):
    if text is not None:
        (tmp_path / name).write_text(text)
    assert said in refusal(tmp_path / name)


def test_bytes_that_are_no_text_and_a_file_of_100_megabytes_are_refused_unread(tmp_path):
    (tmp_path / "x.json").write_bytes(b"\xff\xfe")
    assert "not UTF-8 text" in refusal(tmp_path / "x.json")
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(100_000_000)
    began = time.monotonic()
    assert "100,000,000 bytes; such a file has at most" in refusal(tmp_path / "large.json")
    assert time.monotonic() - began < 0.5


@pytest.mark.parametrize(
    "reference", [{"join": ["e"] * 50_000}, [{"transpose": {"join": ["e"] * 60_000}}, {"join": ["e"] * 60_000}]]
)
def test_references_that_would_be_huge_are_refused_before_anything_is_allocated(reference):
    began = time.monotonic()
    with pytest.raises(ValueError, match="is more than 1,048,576 numbers"):
        check(
            changed("model.embedding", {"join": [reference, reference]} if isinstance(reference, list) else reference)
        )
    assert time.monotonic() - began < 2


def test_a_product_that_would_take_forever_is_refused_before_it_is_computed():
    value = changed("model.layers.0.attention.scale", [[[[1.0] * 1000]], *["w"] * 100_000])
    value["numbers"]["w"] = [[1.0] * 1000] * 1000
    with pytest.raises(ValueError, match="a pass reads more than"):
        check(value)


def test_a_refusal_needs_no_torch(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(changed("model.head", "f")))
    code = f"import sys; from lab.adder import main\ntry: main(['verify', {str(tmp_path / 'x.json')!r}])\nexcept SystemExit as e: sys.exit(e.code + 10 * ('torch' in sys.modules))"  # noqa: E501
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_verify_refuses_with_status_2(tmp_path, capsys):
    (tmp_path / "x.json").write_text(json.dumps(changed("model.head", "f")))
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(tmp_path / "x.json")])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'x.json'}: model.head.w: no numbers 'f'")


JUNK = st.recursive(st.none() | st.just(10**400) | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["w", "b", "join", "arc", "kind", "norm", "x"]), inner, max_size=2), max_leaves=5)  # fmt: skip  # noqa: E501
PLACES = st.sampled_from(["numbers", "numbers.e", "numbers.q", "model", "model.embedding", "model.positions", "model.rope",  # noqa: E501
    "model.layers", "model.layers.0", "model.layers.0.attention", "model.layers.0.attention.q", "model.layers.0.attention.alibi",  # noqa: E501
    "model.layers.0.attention.norm", "model.layers.0.attention.scale", "model.layers.0.ffn.up", "model.times", "model.norm", "model.head", "prompt", "answer",  # noqa: E501
    "digits", "vocabulary", "precision", "about"])  # fmt: skip


@given(PLACES, JUNK)
def test_whatever_stands_at_a_place_the_file_is_an_adder_or_refused(path, value):
    try:
        check(changed(path, value))
    except ValueError as error:
        said = str(error)
        assert said


def test_json_and_yaml_declare_the_same(tmp_path):
    import yaml

    (tmp_path / "x.json").write_text(json.dumps(LEAST))
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(LEAST))
    assert load(tmp_path / "x.json") == load(tmp_path / "x.yaml")


@pytest.mark.parametrize(
    ("path", "value", "counted"),
    [
        ("about", "", (30, 1)),
        ("numbers.unused", [[1.0, 2.0]], (32, 1)),
        ("model.layers.0.attention.heads", 1, (30, 1)),
        ("model.layers.0.attention.scale", 8, (30, 2)),
        ("model.layers.0.attention.alibi", [0.5], (30, 2)),
        ("model.head", {"w": "e", "b": [0.0] * 12}, (30, 13)),
        ("model.layers.0.ffn.residual", 0, (30, 2)),
        ("model.layers.0.ffn.norm", {"kind": "layer", "eps": 1e-3}, (30, 2)),
        ("model.times", 3, (30, 1)),
    ],
)
def test_every_table_and_every_literal_counts_and_no_size(path, value, counted):
    assert count(check(changed(path, value))) == counted
