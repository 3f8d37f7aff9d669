"""Every known cheat is rejected by the layer that is named for it, every legitimate construction accepted."""

from pathlib import Path

import pytest

from lab.errors import TaskError
from lab.smallest_adder import sandbox
from lab.smallest_adder.confinement import LIMITS as LIMITS_NAME
from lab.smallest_adder.confinement import lacks
from lab.smallest_adder.sandbox import Limits
from lab.smallest_adder.verify import Verification, verify

SUBMISSIONS = Path(__file__).parent / "submissions"

LIMITS = Limits(memory=3 << 29, seconds=60)
IMPATIENT = Limits(memory=3 << 29, seconds=3)

CHEATS = {
    "arithmetic_in_forward": "parameters matter",
    "attention_times_zero": "self-attention",
    "no_attention": "self-attention",
    "packed_bits": "fixed computation",
    "canary": "attention alone",
    "exact_values": "attention alone",
    "rounds": "fixed computation",
    "python_integers": "fixed computation",
    "weights_in_text": "fixed computation",
    "weights_as_scalars": "fixed computation",
    "late_buffer": "hidden tensors",
    "lying_shape": "interface",
    "softmax_replaced": "source",
    "patches_harness": "source",
    "decode_adds": "decode honesty",
    "carries_left_to_decode": "decode honesty",
    "equals_everything": "decode honesty",
    "sum_in_prompt": "encode copies",
    "carries_in_prompt": "encode copies",
    "shared_dictionary": "accuracy",
    "memorised_public_test": "accuracy",
    "bits_in_masks": "boolean buffers",
    "plain_attribute": "hidden tensors",
    "closure": "hidden tensors",
    "global": "hidden tensors",
    "argmax_replaced": "torch untouched",
    "not_causal": "causality",
}

MISBEHAVIOURS = {
    "hangs": ("encode bounds", ""),  # stopped by the clock or by the limit on processor time
    "sleeps": ("interface", "no answer within 3 seconds"),
    "crashes": ("interface", "SIGSEGV"),
    "raises": ("interface", "ZeroDivisionError"),
    "exits": ("interface", "ended itself"),
    "eats_memory": ("logits", ""),
    "forges": ("interface", "channel"),
    "nests": ("interface", "channel"),
    "error_text": ("interface", "cannot be shown"),
    "stops": ("interface", "PermissionError"),
    "threads": ("interface", "can't start new thread"),
    "floods": ("encode bounds", "100,000,000 tokens"),
}

HONEST = sorted(path.stem for path in SUBMISSIONS.glob("honest_*.py"))

# A run without the slow tests looks at these, a full one at all.
QUICK_CHEATS = ("canary",)
QUICK_MISBEHAVIOURS = ("crashes", "raises", "forges", "error_text", "stops")


def tried(name: str, count: int = 200, limits: Limits = LIMITS, seed: int | None = None) -> Verification:
    return verify((SUBMISSIONS / f"{name}.py").read_text(), seed, count, limits)


def rejections(verification: Verification) -> dict[str, str]:
    return {verdict.layer: verdict.reason for verdict in verification.verdicts if verdict.passed is False}


def test_an_honest_submission_passes_every_layer():
    verification = tried("honest_by_hand", count=200)
    assert verification.qualified, rejections(verification)
    assert verification.right == verification.problems == 210
    assert verification.counts is not None
    assert verification.counts.parameters == 56


def test_rounding_at_a_prompt_where_nobody_reads_rejects_nobody():
    # at seed 2360 a prompt has the value 95, where the submission's step is: 1e-5 more or less turns its logits
    verification = tried("honest_sdpa", count=20, seed=2360)
    assert verification.qualified, rejections(verification)


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_every_legitimate_construction_is_accepted(name):
    verification = tried(name, count=20 if name == "honest_one_at_a_time" else 1_500)
    assert verification.qualified, rejections(verification)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["untrained_rope_gqa", "untrained_two_layers"])
def test_a_legitimate_model_that_cannot_add_is_rejected_for_that_alone(name):
    assert set(rejections(tried(name))) == {"accuracy"}


@pytest.mark.parametrize(
    "name", [name if name in QUICK_CHEATS else pytest.param(name, marks=pytest.mark.slow) for name in CHEATS]
)
def test_every_cheat_is_rejected_by_its_layer(name):
    assert CHEATS[name] in rejections(tried(f"cheat_{name}"))


@pytest.mark.slow
def test_the_public_problems_memorised_are_known_without_attention():
    found = rejections(tried("cheat_memorised_public_test", count=1_100, seed=2025))
    assert "self-attention" in found
    assert "accuracy" not in found


@pytest.mark.slow
def test_a_model_that_confirms_answers_which_it_does_not_write_is_rejected():
    found = rejections(tried("cheat_reads_the_draft", count=3_000))
    assert {"causality", "generation"} & set(found)


@pytest.mark.slow
def test_a_small_view_registered_first_does_not_hide_what_it_views():
    counts = tried("cheat_view_first", count=100).counts
    assert counts is not None
    assert (counts.parameters, counts.by_data_ptr) == (56, 17)


@pytest.mark.slow
def test_a_module_that_does_not_name_its_parts_is_counted_all_the_same():
    counts = tried("cheat_hidden_module", count=100).counts
    assert counts is not None
    assert counts.parameters == 56


def test_the_verdict_says_what_kept_the_submission_from_harm():
    confinement = tried("bad_raises", count=10).confinement
    assert {LIMITS_NAME, "seccomp"} <= set(confinement)
    assert lacks(confinement) == ([] if "Landlock" in confinement else ["read files that its user can read"])


def test_without_confinement_it_says_so():
    assert lacks([LIMITS_NAME]) == ["anything that its user can"]


def test_where_nothing_confines_only_the_trusting_go_on(monkeypatch):
    monkeypatch.setattr(sandbox, "confinable", lambda: False)
    with pytest.raises(TaskError, match="--unconfined"):
        tried("bad_raises", count=10)
    assert tried("bad_raises", count=10, limits=LIMITS._replace(confined=False)).verdicts[1].passed is False


def test_a_process_that_cannot_be_confined_is_not_blamed_on_the_submission():
    with pytest.raises(TaskError, match="started and confined"):
        tried("honest_by_hand", count=10, limits=Limits(memory=1 << 70))


@pytest.mark.slow
def test_three_numbers_by_hand_qualify():
    path = Path(__file__).parents[2] / "experiments" / "adder_by_hand.py"
    verification = verify(path.read_text(), seed=2025)
    assert verification.qualified, rejections(verification)
    assert verification.right == 10_010
    assert verification.counts is not None
    assert verification.counts.parameters == 3


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK_MISBEHAVIOURS else pytest.param(name, marks=pytest.mark.slow) for name in MISBEHAVIOURS],
)
def test_what_misbehaves_gets_a_verdict(name):
    layer, reason = MISBEHAVIOURS[name]
    limits = IMPATIENT if name in ("hangs", "sleeps") else LIMITS
    verification = tried(f"bad_{name}", count=100, limits=limits)
    assert reason in rejections(verification)[layer]
    assert verification.verdicts[-1].passed is None


@pytest.mark.slow
def test_a_gigabyte_that_is_printed_goes_nowhere(capfd):
    assert tried("bad_prints", count=100).qualified
    assert capfd.readouterr().out == ""


def test_a_submission_deletes_writes_reads_and_starts_nothing(tmp_path):
    (tmp_path / "kept.txt").write_text("kept")
    source = (SUBMISSIONS / "bad_deletes.py").read_text()
    source = source.replace('os.environ["ADDER_TEST_FOLDER"]', repr(str(tmp_path)))
    found = rejections(verify(source, None, 100, LIMITS))
    assert set(found) == {"source"}  # it is loaded and runs: each harm was refused, or it would have raised
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]
    assert (tmp_path / "kept.txt").read_text() == "kept"


@pytest.mark.slow
def test_with_one_seed_the_problems_and_the_score_are_the_same():
    one, other = (tried("cheat_carries_in_prompt", count=50, seed=7) for _ in range(2))
    assert one[:5] == other[:5]
