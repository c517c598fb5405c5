"""Shells complete commands, options and names, by the script that Typer installs."""

import os
import subprocess
import sys

from sweep.cli.options import complete_entries, complete_strategies

# The name that a shell knows it by.
PARADL = "import sys; sys.argv[0] = 'paradl'; from sweep.cli.main import main; main()"


def ask_bash(line: str) -> set[str]:
    """What the command answers bash, which completes this line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    environment = os.environ | words | {"_PARADL_COMPLETE": "complete_bash"}
    ended = subprocess.run(
        [sys.executable, "-c", PARADL], env=environment, capture_output=True, text=True, check=False
    )
    assert not ended.stderr
    return set(ended.stdout.split())


def test_shells_complete_commands_and_names():
    """Typer's script for bash; those of other shells ask the same functions."""
    assert "bottleneck" in ask_bash("paradl bo")
    assert "cosmoflow" in ask_bash("paradl best --model cos")


def test_names_are_completed_in_lists():
    assert complete_entries("model")("vgg16,resnet5") == ["vgg16,resnet50"]
    assert "abci" in complete_entries("system")("")
    assert complete_entries("dataset")("nothing") == []
    assert complete_strategies("data+sp") == ["data+spatial"]
    assert complete_strategies("data,fil") == ["data,filter"]
