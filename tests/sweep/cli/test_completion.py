"""Shells complete commands, options and names, by the script that Typer installs."""

import os
import subprocess
import sys

import pytest

from sweep.cli.shared_options import complete_entries, complete_strategies

# The name that a shell knows it by.
PARADL = "import sys; sys.argv[0] = 'paradl'; from sweep.cli.main import main; main()"


def ask_shell(shell: str, line: str) -> set[str]:
    """What the command tells a shell that completes this line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_TYPER_COMPLETE_ARGS": line}
    environment = os.environ | words | {"_PARADL_COMPLETE": f"complete_{shell}"}
    environment |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    ended = subprocess.run(
        [sys.executable, "-c", PARADL], env=environment, capture_output=True, text=True, check=False
    )
    assert not ended.stderr
    return set(ended.stdout.replace('"', " ").replace("\t", " ").split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_names(shell):
    assert "bottleneck" in ask_shell(shell, "paradl bo")
    assert "cosmoflow" in ask_shell(shell, "paradl best --model cos")


def test_names_are_completed_in_lists():
    assert complete_entries("model")("vgg16,resnet5") == ["vgg16,resnet50"]
    assert "abci" in complete_entries("system")("")
    assert complete_entries("dataset")("nothing") == []
    assert complete_strategies("data+sp") == ["data+spatial"]
    assert complete_strategies("data,fil") == ["data,filter"]
