"""Convergence laws of a spec: where the file is looked for."""

from pathlib import Path

from paradl.grids.library import find, look_up_convergences

ROWS = (
    "model,dataset,target,global_batch,epochs",
    "toy,cifar10,90 %,64,7",
    "toy,cifar10,90 %,512,9",
)


def test_a_file_at_home_behind_a_spec_s_folder(tmp_path, monkeypatch):
    (tmp_path / "mine.csv").write_text("\n".join(ROWS) + "\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    data = find("dataset", "cifar10", Path())
    laws = look_up_convergences(("~/mine.csv",), None, ["toy"], [data], tmp_path / "specs")
    assert set(laws) == {("toy", "cifar10")}
