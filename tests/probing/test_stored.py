"""Activations on disk are those of the run, with their prompts."""

import pytest
import torch

from lab.errors import RunError
from lab.probing.stored import Stored, store
from tests.probing.known_adders import native_adder

NAMES = ["blocks.0.hook_resid_post", "blocks.1.attn.hook_z"]


def test_what_is_read_from_disk_is_what_the_run_had_across_the_ends_of_files(tmp_path):
    adder = native_adder()
    sums = adder.sums([(12 + row, 34) for row in range(7)])
    store(adder, sums, NAMES, tmp_path / "kept", batch_size=3)
    found, (_, run) = Stored(tmp_path / "kept"), adder.activations(sums, NAMES)
    for name in NAMES:
        for rows in (slice(None), slice(2, 5), slice(0, 7, 3), slice(6, 7)):
            assert torch.allclose(found[name, rows], run[name][rows], atol=1e-5)
    assert found.ids == sums.tokens_BT.tolist()
    assert found.words[0] == adder.writer.words(found.ids[0])
    with pytest.raises(RunError, match=r"no activations of blocks\.0\.hook_mlp_out; it has blocks\.0"):
        found["blocks.0.hook_mlp_out", slice(None)]


def test_a_folder_that_is_unfinished_or_taken_is_refused_in_one_line(tmp_path):
    adder = native_adder()
    sums = adder.sums([(12, 34)])
    store(adder, sums, NAMES, tmp_path)
    with pytest.raises(RunError, match="something in it already"):
        store(adder, sums, NAMES, tmp_path)
    (tmp_path / "activations-00000.safetensors").write_bytes(b"x")
    with pytest.raises(RunError, match=r"activations-00000.safetensors: cannot be read"):
        Stored(tmp_path)[NAMES[0], slice(None)]
    (tmp_path / "prompts.json").unlink()
    with pytest.raises(RunError, match="no stored activations"):
        Stored(tmp_path)
