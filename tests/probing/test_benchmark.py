"""The benchmark's adders are what they are said to be, and its measures measure."""

import csv
import math

import numpy as np
import pytest
import torch

from experiments import trained_circuits as verified
from lab.probing.addition.pairs import carry_only
from lab.probing.benchmark.contestants import CONTESTANTS, Trial, auroc, parts
from lab.probing.benchmark.families import trained
from lab.probing.benchmark.families.trained import VERIFIED
from lab.probing.benchmark.known import FIELD, FieldSums
from lab.probing.benchmark.running import ADDERS
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE
from lab.probing.instruments import patching

DRAWN = np.random.default_rng(0)
NUMBERS = [(int(a), int(b)) for n in (1, 2, 4, 6) for a, b in DRAWN.integers(0, 10**n, (30, 2))]
NUMBERS += [(99999, 1), (5, 5), (999999, 1), (54545, 45454), (54545, 45455), (0, 0)]
PAIRS = carry_only(4, 1, 8, seed=0)


def test_there_are_at_least_twenty_adders_and_names_are_those_of_files():
    assert len(ADDERS) >= 20
    assert {"ones last", "borrow", "three operands", "llama", "ones first, superposed"} <= set(ADDERS)


@pytest.mark.slow
@pytest.mark.parametrize("name", VERIFIED)
def test_the_circuit_of_a_trained_adder_is_found_again_by_intervention(name):
    adder = ADDERS[name](0)
    assert verified.nodes(adder, trained.pairs()) == adder.known.nodes


@pytest.mark.slow
def test_the_circuit_of_an_adder_written_by_hand_is_what_intervention_finds():
    adder = ADDERS["ones first"](11)
    pairs = carry_only(4, 1, 12, seed=3)
    assert verified.nodes(adder, pairs) == adder.known.nodes
    assert verified.wires(adder, pairs) == adder.known.edges


@pytest.mark.slow
@pytest.mark.parametrize("name", ADDERS)
@torch.inference_mode()
def test_every_adder_adds_and_intervention_confirms_its_circuit(name):
    adder = ADDERS[name](11)
    sums = adder.sums([pair for pair in NUMBERS if max(pair) < 10**adder.known.longest])
    assert sums.read(adder.logits(sums)).exact_B.all()
    circuit = adder.known.nodes
    heads = [Component("head", layer, head) for layer in range(adder.layers) for head in range(adder.heads)]
    parts = [*heads, *(Component("mlp", layer) for layer in range(adder.layers))]
    outside = tuple(one for one in parts if one not in circuit)
    patches = [*(patching.Patch((one,), EVERYWHERE) for one in sorted(circuit)), patching.Patch(outside, EVERYWHERE)]
    patches.append(patching.Patch(tuple(sorted(circuit)), EVERYWHERE))
    axes = {"patch": list(map(str, patches))}
    effect = np.abs(patching.patch(adder, PAIRS, patches, "effect", axes).effect.value).max(0)
    *alone, without, whole = effect
    assert without == pytest.approx(0, abs=0.05)  # everything outside the circuit does nothing, even together
    assert whole == pytest.approx(1, abs=0.05)
    if not any(word in name for word in ("backup", "superposed", "drawn, sharp")):  # there, a part may do nothing alone
        assert min(alone) > 0.05


def test_seeds_shuffle_heads_and_turn_the_stream():
    one, other = ADDERS["ones first"](11), ADDERS["ones first"](12)
    assert one.known.carry_heads != other.known.carry_heads
    assert abs(float(one.known.carry_D @ other.known.carry_D)) < 0.9
    assert ADDERS["ones first"](0).known.carry_heads == ((0, 2), (0, 3))


def test_another_seed_draws_other_circuits():
    circuits = {
        frozenset(ADDERS[f"drawn, smooth {number}"](seed).known.edges) for number in range(4) for seed in (1, 2)
    }
    assert len(circuits) >= 6
    assert ADDERS["drawn, sharp 0"](1).known.edges == ADDERS["drawn, sharp 0"](1).known.edges


def test_a_bump_seems_to_matter_to_gradients_and_mean_ablation_and_not_to_patching():
    trial = Trial(ADDERS["ones first, bump after"](11), pairs=6)
    alarms = {name: CONTESTANTS[f"{name} (nodes)"](trial)["false alarms"] for name in BUMPED}
    assert alarms == BUMPED


BUMPED = {"activation patching": 0, "EAP-IG": 1, "resample ablation": 0, "attribution patching": 1, "mean ablation": 1}
"""False alarms; the idle carry's MLP is the one part that a bump can make seem to matter."""


def test_subtractors_write_the_second_number_as_its_complement_and_of_three_operands_the_last_two_do_not_carry():
    written = FieldSums(complement=True).write(52, 13)
    assert written.ids[FIELD + 2 : FIELD + 5] == [6, 8, 9]  # 13 is written as ...986, ones first
    three = FieldSums(operands=3).write(52, 913)
    fields = [three.ids[start : start + FIELD] for start in (1, FIELD + 2, 2 * FIELD + 3, 3 * FIELD + 4)]
    a, second, third, total = (int("".join(map(str, reversed(digits)))) for digits in fields)
    assert (a, second + third, total) == (52, 913, 965)
    assert all(one + other <= 9 for one, other in zip(fields[1], fields[2], strict=True))
    assert second
    assert third


def test_auroc_by_hand():
    in_circuit = np.array([True, True, False, False])
    assert auroc(np.array([3.0, 1, 2, 0]), in_circuit) == 0.75
    assert auroc(np.zeros(4), in_circuit) == 0.5
    assert math.isnan(auroc(np.zeros(4), np.zeros(4, bool)))
    found = parts(np.array([-1.0, 0.01, 0.5, np.nan]), in_circuit)
    assert found == {"AUROC": 0.75, "false alarms": 1, "missed": 1}


def test_scores_tell_an_instrument_that_finds_all_from_one_that_is_misled():
    trial = Trial(ADDERS["ones first, backup head"](11), pairs=6)
    patched = CONTESTANTS["activation patching (nodes)"](trial)
    assert patched["missed"] == 2  # either head that brings a_{k-1} stands in for the other
    assert patched["false alarms"] == 0
    sharp = Trial(ADDERS["ones first, sharp"](11), pairs=6)
    assert CONTESTANTS["attribution patching (nodes)"](sharp)["missed"] == 2
    assert CONTESTANTS["EAP-IG (nodes)"](sharp) == {"AUROC": 1, "false alarms": 0, "missed": 0}
    assert CONTESTANTS["alignment (heads)"](sharp) == {"false alarms": 0, "missed": 0}


@pytest.mark.slow
def test_the_command_leaves_scores_and_tables_and_goes_on_where_it_stopped(tmp_path, capsys):
    from lab.probe import main

    given = ["benchmark", "adders=[ones first]", "pairs=4", "das_steps=2", "steps=2", f"output={tmp_path}"]
    main(given)
    run = tmp_path / "probe_benchmark"
    rows = list(csv.DictReader((run / "scores.csv").open()))
    assert {row["instrument"] for row in rows} == set(CONTESTANTS)
    truth = {row["measure"]: float(row["value"]) for row in rows if row["instrument"] == "the truth (direction)"}
    assert truth["|cos|"] == truth["rate"] == 1
    assert truth["truth denied"] == truth["claimed before"] == 0
    capsys.readouterr()
    main([*given, "resume=true"])
    assert "seed 1 ..." not in capsys.readouterr().out


def test_adders_that_there_are_not_are_refused_before_anything_is_written(tmp_path, capsys):
    from lab.probe import main

    with pytest.raises(SystemExit) as exit:
        main(["benchmark", "adders=[abacus]", f"output={tmp_path}"])
    assert exit.value.code == 2
    assert "adder 'abacus': should be one of " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
