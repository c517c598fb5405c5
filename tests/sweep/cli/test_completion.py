"""Shells complete commands, options and names, by the script that Typer installs."""

import pytest

from paradl.sweep.cli.options import complete_names


@pytest.mark.parametrize(
    ("line", "word"), [("paradl bo", "bottleneck"), ("paradl best --model cos", "cosmoflow")]
)
def test_shells_complete_commands_and_names(line, word, cli, monkeypatch):
    """Typer's script for bash; those of other shells ask the same functions."""
    monkeypatch.setenv("_PARADL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    code, out, err = cli()
    assert (code, err) == (0, "")
    assert word in out.split()


def test_names_are_completed_in_lists():
    assert complete_names("model")("vgg16,resnet5") == ["vgg16,resnet50"]
    assert "abci" in complete_names("system")("")
    assert complete_names("dataset")("nothing") == []
    assert complete_names("strategy")("data+sp") == ["data+spatial"]
    assert complete_names("strategy")("data,fil") == ["data,filter"]
