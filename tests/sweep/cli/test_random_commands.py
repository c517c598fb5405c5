"""Any words of the catalogue make a command: it ends with an answer, or with one short message."""

import json
from random import Random

import pytest

DATASETS = {
    "alexnet": "imagenet",
    "cosmoflow": "cosmoflow-256",
    "vit_b_16": "imagenet",
    "gnmt": "wmt16-en-de",
    "big_lstm": "one-billion-words",
    "llama2_7b": "pile",
    "mixtral_8x7b": "pile",
    "t5_11b": "pile",
}
SYSTEMS = ("abci", "dgx-h100", "dgx-h100:precision=fp8", "frontier:software=megatron", "tpu-v4")
STRATEGIES = (
    *("data", "spatial", "pipeline:segments=4", "filter", "serial", "data:zero=3", "placement"),
    *("data+filter:group=best", "data+channel:group=4", "data+spatial+pipeline", "data:micro=1"),
    *("fsdp", "megatron", "data+tensor:tensor=2", "tp2 pp2 mb1 zero1", "layouts"),
)
OPTIONS = (
    *(("--oracle", "paper"), ("--global-batch", "64"), ("--optimizer", "adam")),
    *(("--set", "memory_capacity=1GB"), ("--set", "tensor=2"), ("--recompute", "full")),
    *(("--set", "inter_latency=-1"), ("--set", "bandwith=3"), ("--calibration", "none")),
)
VERBS = ("predict", "explain", "best", "limits", "pareto", "bottleneck", "provision")
COMMANDS = 8
# An answer, bad input, nothing feasible.
ENDS = (0, 2, 4)


def draw_command(draw: Random) -> list[str]:
    model, verb = draw.choice([*DATASETS]), draw.choice(VERBS)
    system = draw.choice(SYSTEMS)
    command = [verb, "--model", model, "--system", system, "--format", "json"]
    command += ["--pe", draw.choice(("1", "7", "64", "1024"))]
    command += ["--dataset", DATASETS[model], "--batch", draw.choice(("1", "32", "100000"))]
    if verb in ("predict", "explain"):
        return [*command, "--strategy", draw.choice(STRATEGIES), *draw.choice(OPTIONS)]
    strategies = draw.choice(((), ("--strategy", ",".join(draw.sample(STRATEGIES, 2)))))
    goal = ("--deadline", "2h", "--epochs", "1") if verb == "provision" else ()
    return [*command, *strategies, *goal, *draw.choice(((), draw.choice(OPTIONS)))]


@pytest.mark.parametrize("seed", range(2))
def test_a_command_ends_with_an_answer_or_a_message(cli, seed: int) -> None:
    draw = Random(seed)
    for _ in range(COMMANDS):
        command = draw_command(draw)
        code, out, err = cli(*command)
        assert code in ENDS, (command, err)
        assert "Traceback" not in err, command
        if code == 2:
            assert not out, command
            assert len(err) < 2000, command
        elif out.strip():
            json.loads(out, parse_constant=pytest.fail)  # no NaN


@pytest.mark.parametrize("model", sorted({*DATASETS} - {"alexnet", "llama2_7b"}))
def test_without_a_strategy_every_network_is_ranked(cli, model: str) -> None:
    place = ("--system", "dgx-h100", "--pe", 16, "--batch", 1, "--format", "json")
    code, out, err = cli("best", "--model", model, "--dataset", DATASETS[model], *place)
    assert code in (0, 4), err
    assert json.loads(out)
