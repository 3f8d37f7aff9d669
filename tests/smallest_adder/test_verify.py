"""Every known cheat is rejected by the layer that is named for it, every legitimate construction accepted."""

import re
from pathlib import Path

import pytest

from lab.errors import TaskError
from lab.smallest_adder.trace import child
from lab.smallest_adder.trace.child import Limits
from lab.smallest_adder.trace.confinement import LIMITS as LIMITS_NAME
from lab.smallest_adder.trace.confinement import lacks
from lab.smallest_adder.verdict import Verification
from lab.smallest_adder.verify import verify

ROOT = Path(__file__).parents[2]
SUBMISSIONS = Path(__file__).parent / "submissions"

LIMITS = Limits(memory=3 << 29, seconds=120)
IMPATIENT = Limits(memory=3 << 29, seconds=5)

CHEATS = {
    "arithmetic_in_forward": "parameters matter",
    "attention_times_zero": "self-attention",
    "no_attention": "self-attention",
    "packed_bits": "graph",
    "canary": "arithmetic",
    "exact_values": "arithmetic",
    "rounds": "arithmetic",
    "parameter_taken_apart": "arithmetic",
    "rounds_by_adding": "precision",
    "two_in_one": "precision",
    "whole_numbers": "precision",
    "peels_digits": "precision",
    "python_integers": "graph",
    "numpy": "numbers in the code",
    "weights_in_text": "numbers in the code",
    "weights_as_scalars": "numbers in the code",
    "large_scalars": "numbers in the code",
    "sizes": "size around attention",
    "settings": "numbers in the code",
    "late_buffer": "numbers in the code",
    "bits_in_masks": "numbers in the code",
    "plain_attribute": "numbers in the code",
    "closure": "numbers in the code",
    "global": "numbers in the code",
    "forges": "numbers in the code",
    "seed": "graph",
    "lying_shape": "graph",
    "patches_harness": "numbers in the code",
    "unrolled": "size around attention",
    "shift": "attention alone",
    "decode_adds": "decode honesty",
    "carries_left_to_decode": "decode honesty",
    "carry_read_by_decode": "decode honesty",
    "equals_everything": "decode honesty",
    "sum_in_prompt": "encode copies",
    "carries_in_prompt": "encode copies",
    "shared_dictionary": "accuracy",
    "memorised_public_test": "graph",
    "reads_the_draft": "causality",
    "not_causal": "causality",
    "tiny_logits": "causality",
    "other_weights": "graph",
    "power_of_zero": "arithmetic",
    "one_other_query": "attention alone",
    "one_query_at_a_time": "size around attention",
    "level_for_each_digit": "size around attention",
    "one_query_sees_the_sum": "graph",
    "queries_that_see_the_sum": "attention alone",
    "carries_before_the_mix": "attention alone",
    "carries_weighted": "attention alone",
    "behind_the_mask": "attention alone",
    "keys_that_excuse": "attention alone",
    "sum_names_the_pair": "arithmetic",
    "mixes_after_attention": "attention alone",
    "heads_as_queries": "attention alone",
    "constant_tokens": "attention alone",
    "rare_path": "attention alone",
    "kernel_after_attention": "self-attention",
    "unused_buffer": "size around attention",
    "many_tables": "numbers in the code",
    "wired_bits": "numbers in the code",
    "familiar_numbers": "numbers in the code",
    "stacked_copies": "numbers in the code",
    "table_of_sums": "arithmetic",
    "log2_of_undivided": "self-attention",
    "heads_and_queries_in_one": "attention alone",
    "asleep_after_attention": "attention alone",
    "rare_path_in_scores": "attention alone",
    "rare_path_in_some_lengths": "graph",
    "room_in_one_tensor": "size around attention",
    "ripple_in_three_layers": "size around attention",
    "complex_sums": "size around attention",
    "sum_of_a_stack": "arithmetic",
    "index_put_adds": "arithmetic",
    "nearly_one": "self-attention",
    "single_queries": "attention alone",
    "spread_queries": "attention alone",
    "wired_attention": "attention alone",
    "whole_logits": "arithmetic",
    "forges_a_value_twice": "graph",
    "forges_a_memory": "graph",
}

HIDDEN = {
    **dict.fromkeys(
        ("expanded", "empty", "runs", "broadcast", "sums", "rows", "ramps", "waves"), "numbers in the code"
    ),
    "padding": "size around attention",
    "doubling": "size around attention",
}
"""Where else numbers can be hidden than in parameters (cheat_hides_numbers.py)."""

TABLES = {
    **dict.fromkeys(("rows", "tiny", "huge", "infinities", "places", "grid", "pads"), "numbers in the code"),
    **dict.fromkeys(("large", "familiar", "alike"), "precision"),
    **dict.fromkeys(("index", "sliced_index"), "arithmetic"),
}
"""Where a whole table of numbers can be hidden (cheat_hides_table.py)."""

PIECES = {
    **dict.fromkeys(("logs", "learned_logs", "unbound", "of_tokens", "slice_steps", "bytes"), "numbers in the code"),
    **dict.fromkeys(("stacked", "flips", "transposed", "equalities", "masks", "repeats"), "numbers in the code"),
    **dict.fromkeys(("selected", "traces", "learned_traces", "shifts"), "numbers in the code"),
    **dict.fromkeys(("tail", "zeros_of_sines"), "precision"),
}
"""From which pieces the code can put a table together (cheat_hides_in_pieces.py)."""

PICKS = ("unbound", "split", "rolled", "padded", "sliced", "transposed", "signs", "bits", "learned")
"""How numbers can be places that the code picks (cheat_picks_numbers.py)."""

SUMS = ("numbers", "one_hot", "comparisons", "logic", "shape")
"""How the processor can add the numbers of two tokens (cheat_adds_in_scores.py)."""

BESIDE = {
    **dict.fromkeys(("added", "catenated", "large_scores", "asleep"), "attention alone"),
    **dict.fromkeys(("infinite_key", "undivided"), "self-attention"),
}
"""How a sum that the processor made can pass for what attention read (cheat_beside_attention.py)."""

FROM_ONES = ("learned", "ones", "copies", "lengths", "padding")
"""How numbers can be made without writing any (cheat_numbers_from_ones.py)."""

HARMLESS = {"argmax_replaced": 56, "softmax_replaced": 56, "view_first": 56, "hidden_module": 56, "stack": 56}
"""Submissions that deceive a harness that simply runs the model, and their parameters. Their graphs are honest."""

LITERALS = {
    "places_in_a_moving_ramp": 35,
    "tags_in_digits": 17,
    "literals_in_tokens": 14,
    "familiar_on_what_moves": 22,
    "literals_by_attention": 15,
    "digits_in_prompt": 10,
}
"""Submissions with one parameter, and how many other numbers they have: in prompts, in the code, and made of these."""

MISBEHAVIOURS = {
    "hangs": ("encode bounds", ""),  # stopped by the clock or by the limit on processor time
    "sleeps": ("interface", "no answer within 5 seconds"),
    "crashes": ("interface", "SIGSEGV"),
    "raises": ("interface", "ZeroDivisionError"),
    "exits": ("interface", "ended itself"),
    "eats_memory": ("graph", ""),
    "forges": ("interface", "channel"),
    "nests": ("interface", "channel"),
    "error_text": ("interface", "cannot be shown"),
    "stops": ("interface", "PermissionError"),
    "threads": ("interface", "can't start new thread"),
    "floods": ("encode bounds", "100,000,000 tokens"),
}

HONEST = sorted(path.stem for path in SUBMISSIONS.glob("honest_*.py"))
UNTRAINED = sorted(path.stem for path in SUBMISSIONS.glob("untrained_*.py"))

# Without the slow tests, only these are tried; with them, all are.
QUICK_CHEATS = ("canary", "forges", "two_in_one")
QUICK_MISBEHAVIOURS = ("crashes", "raises", "forges", "error_text", "stops")


def tried(name: str, count: int = 200, limits: Limits = LIMITS, seed: int | None = None) -> Verification:
    return verify((SUBMISSIONS / f"{name}.py").read_text(), seed, count, limits)


def rejections(verification: Verification) -> dict[str, str]:
    return {verdict.layer: verdict.reason for verdict in verification.verdicts if verdict.passed is False}


@pytest.mark.slow
def test_an_honest_submission_passes_every_layer():
    verification = tried("honest_by_hand", count=200)
    assert verification.qualified, rejections(verification)
    assert verification.right == verification.problems == 210
    assert verification.counts is not None
    assert verification.counts.parameters == 56


@pytest.mark.slow
def test_rounding_at_a_prompt_where_nobody_reads_rejects_nobody():
    # at seed 2360 a prompt has the value 95, exactly at the submission's step: 1e-5 more or less changes its logits
    verification = tried("honest_sdpa", count=20, seed=2360)
    assert verification.qualified, rejections(verification)


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_every_legitimate_construction_is_accepted(name):
    verification = tried(name)
    assert verification.qualified, rejections(verification)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNTRAINED)
def test_a_legitimate_model_that_cannot_add_is_rejected_for_that_alone(name):
    assert set(rejections(tried(name))) == {"accuracy"}


def test_there_are_honest_models_of_all_common_forms():
    assert len(HONEST) + len(UNTRAINED) >= 25


@pytest.mark.parametrize(
    "name", [name if name in QUICK_CHEATS else pytest.param(name, marks=pytest.mark.slow) for name in CHEATS]
)
def test_every_cheat_is_rejected_by_its_layer(name):
    # with a fixed seed, because what matters in one problem of a hundred is seen with most seeds only
    assert CHEATS[name] in rejections(tried(f"cheat_{name}", seed=1))


def tricked(name: str, trick: str) -> dict[str, str]:
    """Why a submission that has several tricks is rejected if it uses `trick`."""
    source = (SUBMISSIONS / f"cheat_{name}.py").read_text()
    return rejections(verify(re.sub('TRICK = ".*"', f'TRICK = "{trick}"', source), count=20, limits=LIMITS))


@pytest.mark.parametrize("trick", ["expanded", *(pytest.param(trick, marks=pytest.mark.slow) for trick in HIDDEN)])
def test_numbers_that_are_hidden_in_what_costs_nothing_are_found(trick):
    assert HIDDEN[trick] in tricked("hides_numbers", trick)


@pytest.mark.slow
@pytest.mark.parametrize("trick", ["norm", "distance", "power", "atan2", "complex", "tiny", "infinity", "nan"])
def test_a_comparison_by_another_name_is_found(trick):
    assert "arithmetic" in tricked("step_by_another_name", trick)


@pytest.mark.slow
def test_a_mask_may_be_registered_as_numbers_and_compared():
    source = (ROOT / "experiments" / "results" / "adder_47.py").read_text()
    built, masked = "        super().__init__()\n", "masked_fill(later_AT, -math.inf)"
    assert source.count(masked) == 1
    mask = 'self.register_buffer("tril", torch.tril(torch.ones(40, 40)), persistent=False)'
    start = source.index(built, source.index("class TinyAdder")) + len(built)
    source = f"{source[:start]}        {mask}\n{source[start:]}"
    source = source.replace(masked, "masked_fill(self.tril[:tokens, :tokens] == 0, -math.inf)")
    verification = verify(source, 1, 200, LIMITS)
    assert verification.qualified, rejections(verification)
    assert verification.counts is not None
    assert verification.counts.parameters == 47 + 1600


@pytest.mark.slow
@pytest.mark.parametrize("trick", TABLES)
def test_a_table_that_is_hidden_in_the_code_is_found(trick):
    assert TABLES[trick] in tricked("hides_table", trick)


@pytest.mark.slow
@pytest.mark.parametrize("trick", PIECES)
def test_a_table_that_the_code_puts_together_is_found(trick):
    assert PIECES[trick] in tricked("hides_in_pieces", trick)


@pytest.mark.slow
def test_what_is_read_beside_the_registered_part_of_a_tensor_counts_too():
    source = (SUBMISSIONS / "cheat_hides_in_pieces.py").read_text().replace('TRICK = "logs"', 'TRICK = "rest"')
    found = verify(source, count=20, limits=LIMITS).counts
    assert found is not None
    assert found.parameters == 58


@pytest.mark.slow
@pytest.mark.parametrize("trick", FROM_ONES)
def test_numbers_that_are_made_without_writing_any_are_counted(trick):
    assert "numbers in the code" in tricked("numbers_from_ones", trick)


@pytest.mark.slow
@pytest.mark.parametrize("trick", PICKS)
def test_numbers_that_are_places_are_counted_wherever_they_are_picked(trick):
    assert "numbers in the code" in tricked("picks_numbers", trick)


@pytest.mark.slow
@pytest.mark.parametrize("trick", SUMS)
def test_sums_of_two_tokens_that_the_processor_makes_are_found(trick):
    assert set(tricked("adds_in_scores", trick)) == {"arithmetic"}


@pytest.mark.slow
@pytest.mark.parametrize("trick", BESIDE)
def test_a_sum_that_reaches_the_logits_beside_attention_is_found(trick):
    assert BESIDE[trick] in tricked("beside_attention", trick)


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMLESS)
def test_what_deceives_by_other_means_than_its_graph_is_judged_and_counted_by_its_graph(name):
    verification = tried(f"cheat_{name}")
    assert verification.qualified
    assert verification.counts is not None
    assert verification.counts.parameters == HARMLESS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", LITERALS)
def test_numbers_that_are_no_parameters_are_counted_wherever_they_are(name):
    counts = tried(f"cheat_{name}", count=20).counts
    assert counts is not None
    assert (counts.parameters, counts.literals) == (1, LITERALS[name])


@pytest.mark.slow
def test_whether_attention_depends_on_tokens_is_measured():
    assert tried("honest_by_hand", count=20).content == 0
    content = tried("untrained_linear_attention", count=20).content
    assert content is not None
    assert content > 1e-3


@pytest.mark.slow
def test_attention_whose_mean_weights_do_as_well_is_attention_by_position():
    assert tried("cheat_decoy_content", count=20).content == 0


@pytest.mark.slow
@pytest.mark.parametrize("trick", ["values", "head"])
def test_attention_after_which_all_depends_on_a_sum_over_tokens_is_attention_by_position(trick):
    source = (SUBMISSIONS / "cheat_undone_content.py").read_text().replace('TRICK = "values"', f'TRICK = "{trick}"')
    assert verify(source, 1, 20, LIMITS).content == 0


@pytest.mark.slow
@pytest.mark.parametrize("has_unused", [False, True])
def test_attention_to_tokens_is_no_attention_by_position_whatever_the_logits_of_an_unused_token_are(has_unused):
    source = (SUBMISSIONS / "honest_47_float64.py").read_text()
    logits = "last_BAD @ self.digits_VD.T if self.head is None else self.head(last_BAD)"
    assert f"        return {logits}" in source
    if has_unused:
        source = source.replace("VOCAB_SIZE = 10", "VOCAB_SIZE = 11")
        source = source.replace(f"return {logits}", f"return nn.functional.pad({logits}, (0, 1), value=-1e9)")
    content = verify(source, 1, 20, LIMITS).content
    assert content is not None
    assert content > 0.1


@pytest.mark.slow
def test_the_clock_is_for_the_whole_trial():
    verification = tried("honest_last_only", count=100_000, limits=LIMITS._replace(seconds=1))
    (reason,) = rejections(verification).values()
    assert "within 1 seconds" in reason


def test_the_verdict_says_what_kept_the_submission_from_harm():
    confinement = tried("bad_raises", count=10).confinement
    assert {LIMITS_NAME, "seccomp"} <= set(confinement)
    assert lacks(confinement) == ([] if "Landlock" in confinement else ["read files that its user can read"])


def test_without_confinement_the_verdict_says_so():
    assert lacks([LIMITS_NAME]) == ["anything that its user can"]


def test_if_nothing_confines_a_submission_it_runs_only_if_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(child, "confinable", lambda: False)
    with pytest.raises(TaskError, match="unconfined=true"):
        tried("bad_raises", count=10)
    assert tried("bad_raises", count=10, limits=LIMITS._replace(confined=False)).verdicts[0].passed is False


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


@pytest.mark.slow
def test_a_submission_deletes_writes_reads_and_starts_nothing(tmp_path):
    (tmp_path / "kept.txt").write_text("kept")
    source = (SUBMISSIONS / "bad_deletes.py").read_text()
    source = source.replace('os.environ["ADDER_TEST_FOLDER"]', repr(str(tmp_path)))
    found = rejections(verify(source, None, 100, LIMITS))
    assert not found  # it is loaded and runs: each harm was refused, or it would have raised
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]
    assert (tmp_path / "kept.txt").read_text() == "kept"


@pytest.mark.slow
def test_with_one_seed_the_problems_and_the_score_are_the_same():
    one, other = (tried("cheat_carries_in_prompt", count=50, seed=7) for _ in range(2))
    assert one[:5] == other[:5]
