import json
from zipfile import ZipFile

import pytest
import torch
from safetensors.torch import save_file

from lab.errors import ModelError
from lab.tune.checkpoints import check_undamaged, last_checkpoint


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "checkpoint-10"
    folder.mkdir()
    save_file({"weight": torch.arange(100.0)}, folder / "adapter_model.safetensors")
    torch.save({"state": torch.arange(100.0)}, folder / "optimizer.pt")
    torch.save({}, folder / "scheduler.pt")
    torch.save({}, folder / "rng_state.pth")
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 10}))
    return folder


def test_the_newest_whole_checkpoint_is_gone_on_from(checkpoint, tmp_path):
    (tmp_path / "checkpoint-9").mkdir()
    (tmp_path / "checkpoint-9" / "trainer_state.json").write_text('{"global_step": 9}')
    (tmp_path / "checkpoint-11").mkdir()  # killed before its last file was written
    (tmp_path / "checkpoint-12").mkdir()
    (tmp_path / "checkpoint-12" / "trainer_state.json").write_text('{"global_st')  # killed while it was
    (tmp_path / "checkpoint-old").mkdir()  # a copy that somebody made
    (tmp_path / "checkpoint-old" / "trainer_state.json").write_text('{"global_step": 99}')
    assert last_checkpoint(tmp_path) == checkpoint
    assert last_checkpoint(tmp_path / "nowhere") is None
    check_undamaged(checkpoint)


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "optimizer.pt"])
def test_a_file_cut_short_is_named_in_one_line(checkpoint, name):
    path = checkpoint / name
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(ModelError, match=rf"{name} is damaged .*remove checkpoint-10") as caught:
        check_undamaged(checkpoint)
    assert "\n" not in str(caught.value)


def test_a_missing_optimizer_is_not_replaced_in_silence(checkpoint):
    (checkpoint / "optimizer.pt").unlink()
    with pytest.raises(ModelError, match=r"has no optimizer\.pt"):
        check_undamaged(checkpoint)


def test_a_missing_state_of_random_draws_is_not_replaced_in_silence(checkpoint):
    (checkpoint / "rng_state.pth").rename(checkpoint / "rng_state_0.pth")  # the first of several processes
    check_undamaged(checkpoint)
    (checkpoint / "rng_state_0.pth").unlink()
    with pytest.raises(ModelError, match=r"has no rng_state\.pth"):
        check_undamaged(checkpoint)


def test_a_flipped_bit_of_the_optimizer_is_found(checkpoint):
    path = checkpoint / "optimizer.pt"
    with ZipFile(path) as archive:
        largest = max(archive.infolist(), key=lambda info: info.file_size)
    data = bytearray(path.read_bytes())
    data[largest.header_offset + largest.compress_size] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"optimizer\.pt is damaged"):
        check_undamaged(checkpoint)
