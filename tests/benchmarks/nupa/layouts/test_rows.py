"""The layouts as marin-community/evalchemy (eval/chat_benchmarks/NUPA-Loose, NUPA5K-Loose) and
marin-community/MarinSkyRL (skyrl-train/examples/nupa) define them."""

import json
import random

import pytest

from lab.benchmarks.nupa.files import read_published, write_published
from lab.benchmarks.nupa.layouts import evalchemy, skyrl, strata
from lab.benchmarks.nupa.problems import pick_problems
from lab.errors import TaskError
from lab.numbers.sampling import Cell, Problem
from lab.numbers.tasks import TASKS
from lab.text.prompts import completion, prompt

SUM = "add_Integer_Integer_Integer"
HINT = "Directly return the answer as an integer without any comma separator, like 123 . Add two numbers: "
TEXTS = {
    SUM: {"10": [f"{HINT}{a} + 1 = {a + 1}" for a in range(7)], "9": [f"{HINT}5 + 1 = 6"] * 2},
    "count_Integer_int_int": {"21": ["Count: 55 count 5 = 2"], "100": ["Count: 7 count 5 = 0"]},
}


IN_MANIFEST = {
    "0096ce8b4a18158bd98fb2998c8a8a376448cc8ea817b5fc310e92521de31dcd": ("add", "integer", "859", "187", "1046", 3),
    "009927ff71f3ea8aa1041eec7547424a02a160f4bce064189cb5eef9a8f1f753": ("add", "fraction", "3/4", "7/5", "43/20", 1),
    "0052c3f9949b9bbc75ce692384a67c885dd905cdb13186376452731628ac4854": ("count", "integer", "58139", "2", "0", 5),
}
"""Digests in evalchemy's nupa5k_manifest.jsonl, and the problems behind them, which were found by trying all pairs of
numbers: so these published texts are known to the last byte without the dataset."""


@pytest.mark.parametrize(("sha256", "fields"), IN_MANIFEST.items())
def test_the_labs_text_of_a_published_problem_has_the_digest_of_the_published_text(sha256, fields):
    item = Problem(*fields)
    assert strata.digest(prompt(item) + completion(item)) == sha256


def test_a_row_has_evalchemys_fields_and_bytes(tmp_path):
    assert evalchemy.write(evalchemy.sampled({SUM: {"3": [f"{HINT}830 + 70 = 900"]}}), tmp_path / "x.jsonl") == 1
    assert (tmp_path / "x.jsonl").read_bytes() == (
        b'{"answer": "900", "answer_format": "Integer", "digit": 3, "id": "test:add_Integer_Integer_Integer:3:000000", '
        b'"length_bucket": "S", "operation": "add", "prompt": "Directly return the answer as an integer without any '
        b'comma separator, like 123 . Add two numbers: 830 + 70 =", "task_name": "add_Integer_Integer_Integer"}\n'
    )


def test_the_sample_is_drawn_as_evalchemy_draws_it():
    """One generator for the whole file, one draw for each stratum, in the order of the file."""
    found = [row["prompt"] for row in evalchemy.sampled(TEXTS, each=3)]
    draw = random.Random(20_222_943)
    expected = [draw.sample(group, min(3, len(group))) for groups in TEXTS.values() for group in groups.values()]
    assert found == [f"{text.rpartition(' =')[0]} =" for group in expected for text in group]


def test_operations_formats_and_ranges_are_named_as_they_name_them():
    names = ["digit_max_Float_Float_Float", "get_digit_Integer_int_int", "to_scient_Float_none_ScientificNotation"]
    names += ["max_hard_Float_Float_Float", "mod_easy_Integer_Integer_Integer", "truediv_Integer_Integer_Fraction"]
    said = [strata.facts(name, 3, ["3"], "1 = 1") for name in names]
    assert [one["operation"] for one in said] == [
        "digit_max",
        "get_digit",
        "to_scient",
        "max_hard",
        "mod_easy",
        "truediv",
    ]
    assert [one["answer_format"] for one in said] == [
        "Float", "Integer", "ScientificNotation", "Float", "Integer", "Fraction",
    ]  # fmt: skip
    short = {digits: strata.facts(SUM, digits, ["21"], "1 = 1")["length_bucket"] for digits in (4, 5, 8, 9, 14, 15, 21)}
    assert short == {4: "S", 5: "M", 8: "M", 9: "L", 14: "L", 15: "XL", 21: "XL"}
    long = {digits: strata.facts(SUM, digits, ["100"], "1 = 1")["length_bucket"] for digits in (10, 11, 20, 60, 61)}
    assert long == {10: "S", 11: "M", 20: "M", 60: "L", 61: "XL"}


def test_the_panel_goes_round_the_strata_in_order_of_digits_and_each_gives_its_smallest_digest():
    chosen = evalchemy.panel(TEXTS, size=6)
    assert [(one.task[:3], one.digits) for one in chosen] == [
        ("add", 9), ("add", 10), ("cou", 21), ("cou", 100), ("add", 10), ("add", 10),
    ]  # fmt: skip
    digests = sorted(map(strata.digest, TEXTS[SUM]["10"]))
    assert [one.sha256 for one in chosen if one.digits == 10] == digests[:3]
    assert evalchemy.panel_rows(TEXTS, chosen)[1]["id"] == f"test:{SUM}:10:{digests[0]}"
    assert evalchemy.panel_rows(TEXTS, chosen)[1]["source_sha256"] == digests[0]
    assert not evalchemy.is_published(chosen)
    with pytest.raises(TaskError, match="a panel of 5,000 texts needs as many distinct ones; the file has 10"):
        evalchemy.panel(TEXTS)


def test_the_manifest_has_evalchemys_bytes():
    """The first line of its nupa5k_manifest.jsonl."""
    sha256 = "0013828a6c608b991199e215824e326ac36fa7a81e12f8f5210b207bb24301aa"
    line = b'{"digit":3,"sha256":"%s","task_name":"add_Float_Float_Float"}\n' % sha256.encode()
    assert evalchemy.manifest([evalchemy.Identity("add_Float_Float_Float", 3, sha256)]) == line


def test_the_training_rows_are_all_distinct_texts_that_are_not_held_out(tmp_path):
    held_out = evalchemy.panel(TEXTS, size=6)
    assert skyrl.write(skyrl.rows(TEXTS, held_out), tmp_path / "train.parquet") == 10 - 6
    rows = skyrl.read(tmp_path / "train.parquet")
    assert [row["extra_info"]["source_sha256"] for row in rows] == sorted(map(strata.digest, TEXTS[SUM]["10"]))[3:]
    first = rows[0]
    assert list(first) == ["data_source", "prompt", "env_class", "reward_spec", "extra_info"]
    assert first["data_source"] == "HaotongYang/NUPA_text"
    assert first["prompt"][0]["role"] == "user"
    assert first["prompt"][0]["content"].endswith(" + 1 =")
    assert first["env_class"] == "nupa"
    assert first["reward_spec"]["method"] == "rule"
    answer = str(int(first["prompt"][0]["content"].split()[-4]) + 1)
    assert first["reward_spec"]["ground_truth"] == f'{{"answer": "{answer}", "answer_format": "Integer"}}'
    assert list(first["extra_info"]) == [
        "task_name", "operation", "answer_format", "digit", "length_bucket", "source_sha256",
    ]  # fmt: skip


def test_problems_of_every_task_are_the_same_after_each_layout(tmp_path):
    cells = [Cell(task, length) for task in TASKS.values() for length in task.tested_lengths if length in (4, 5)]
    problems = pick_problems(cells, 0, 4)
    write_published(problems, tmp_path / "test.json")
    texts = strata.read(tmp_path / "test.json")
    evalchemy.write(evalchemy.sampled(texts), tmp_path / "nupa.jsonl")
    skyrl.write(skyrl.rows(texts, []), tmp_path / "train.parquet")
    for name in ("test.json", "nupa.jsonl", "train.parquet"):
        assert sorted(map(str, read_published(tmp_path / name))) == sorted(map(str, problems))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", '{"prompt": "1 + 1 ="}', "x.jsonl:1: is not a row of evalchemy's NUPA: it has no answer,"),
        ("x.jsonl", "\nno json", "x.jsonl:2: Expecting value"),
        ("x.jsonl", "[1]", "x.jsonl:1: is not a row"),
        ("x.parquet", "no parquet", "x.parquet: "),
    ],
)
def test_a_file_that_is_no_such_layout_is_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(TaskError, match=message) as caught:
        read_published(tmp_path / name)
    assert len(str(caught.value).splitlines()) == 1


def test_a_text_without_an_answer_and_a_row_without_a_truth_are_refused():
    with pytest.raises(TaskError, match="add_Integer_Integer_Integer, 3 digits: no question and answer: '1 and 1'"):
        list(evalchemy.sampled({SUM: {"3": ["1 and 1"]}}))
    for spec in ({}, {"ground_truth": "46"}, {"ground_truth": json.dumps({"answer": "46"})}):
        with pytest.raises(TaskError, match="reward_spec should have a ground_truth"):
            skyrl.ground_truth(spec)
