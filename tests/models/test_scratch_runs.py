import pytest

from lab.errors import ModelError
from lab.models import scratch_runs


def test_what_is_no_run_of_pretrain_is_one_line(tmp_path):
    with pytest.raises(ModelError, match=r"not a run of lab\.pretrain with a model in it"):
        scratch_runs.load(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "config.yaml").write_text("name: x\nengine: {kind: local}\n")
    with pytest.raises(ModelError, match=r"config\.yaml: not a config of lab\.pretrain"):
        scratch_runs.load(tmp_path)
