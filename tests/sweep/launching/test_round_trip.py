"""Written, read, equal: what `explain --launch` writes predicts the same when it is read."""

import json

import pytest

# Micro-batches beside others' exchanges of tokens: where a layout has none, flags leave it out.
SOFTWARE = {
    **{"torchtitan": "fsdp", "torchtitan-0.2": "fsdp", "accelerate": "fsdp", "maxtext": "jax"},
    "deepspeed": "deepspeed",
}
MEGATRON = ("megatron", "megatron-bridge", "nemo", "primus")
TITAN = ("torchtitan", "torchtitan-0.2")
LLAMA, GPT, MIXTRAL, QWEN = "llama3_8b", "gpt3_175b", "mixtral_8x7b", "qwen3_30b_a3b"
FSDP = "dp64 mb2 zero3 shard8 recompute=blocks"
RUNS = [
    (MEGATRON, LLAMA, 64, "tp2 pp2 dp16 mb1 zero1 sp", 8192, ()),
    (MEGATRON, "llama3_70b", 128, "tp8 pp4 v5 dp4 mb1 zero1 sp recompute=core_attn", 8192, ()),
    (MEGATRON, "llama3_70b", 48, "tp8 pp3 dp2 mb1 zero1 sp", 4096, ("--global-batch", 252)),
    (MEGATRON, LLAMA, 16, "tp2 cp2 dp4 mb1 zero1 sp", 8192, ("--context", "all_to_all")),
    (MEGATRON, GPT, 256, "tp8 pp16 dp2 mb1 zero1 sp", 2048, ()),
    (("megatron", "primus"), GPT, 256, "tp8 pp16 v2 dp2 mb1 sp", 2048, ()),
    (MEGATRON, MIXTRAL, 64, "ep8 dp64 mb1 zero3 recompute=blocks", 4096, ()),
    (
        MEGATRON,
        "qwen3_30b_a3b",
        32,
        "tp2 ep8 etp1 pp2 dp8 mb1 zero1 sp recompute=moe_act",
        4096,
        (),
    ),
    (
        *(MEGATRON, "deepseek_v3", 256),
        "tp2 ep64 etp1 pp4 dp32 mb1 zero1 sp recompute=moe_act+mla_up_proj",
        *(4096, ("--precision", "fp8")),
    ),
    (("megatron", "primus"), "t5_11b", 16, "tp8 dp2 mb1 zero1 sp", 512, ()),
    (TITAN, LLAMA, 64, "tp4 pp2 v4 dp8 mb1 zero3 sp recompute=blocks", 8192, ()),
    (TITAN, LLAMA, 64, "tp4 cp2 dp8 mb1 zero3 sp", 8192, ("--context", "all_gather")),
    (("torchtitan",), LLAMA, 64, "dp64 mb1 zero3", 8192, ("--loss", "chunked")),
    (TITAN, LLAMA, 64, "tp4 dp16 mb1 zero2 shard8 sp", 8192, ()),
    (TITAN, "deepseek_v3", 512, "tp8 ep64 etp1 dp64 mb1 zero3 sp recompute=blocks", 4096, ()),
    (
        (*TITAN, "accelerate", "maxtext"),
        LLAMA,
        64,
        "dp64 mb2 zero3 shard8 recompute=blocks",
        8192,
        (),
    ),
    (("maxtext",), MIXTRAL, 64, "ep8 dp64 mb1 zero3 recompute=blocks", 4096, ()),
    (("maxtext",), LLAMA, 64, "tp4 dp16 mb1 zero3 sp recompute=blocks", 4096, ()),
    (("deepspeed",), LLAMA, 64, "tp4 pp4 dp4 mb1 zero1 recompute=blocks", 4096, ()),
    (("deepspeed",), GPT, 256, "tp8 pp16 dp2 mb2 zero1", 2048, ("--global-batch", 512)),
]
EQUAL = ("strategy", "pe", "global_batch", "iteration_time", "memory", "precision", "dataset")


@pytest.mark.parametrize(
    ("framework", "model", "pe", "layout", "length", "options"),
    [(framework, *run) for frameworks, *run in RUNS for framework in frameworks],
)
def test_written_read_equal(framework, model, pe, layout, length, options, tmp_path, cli):
    software = SOFTWARE.get(framework, "megatron,overlap_experts=off")
    precision = () if "--precision" in options else ("--precision", "bf16")
    batch = () if "--global-batch" in options else ("--global-batch", 256)
    given = ("--model", model, "--pe", pe, "--strategy", layout, "--sequence", length)
    system = ("--system", f"dgx-h100:software={software}")
    asked = (*given, *system, *batch, *precision, *options, "--launch", framework, "--json")
    code, out, err = cli("explain", *asked)
    assert code in (0, 4), err
    written = json.loads(out)
    for file in written["launch_files"]:
        (tmp_path / file["file"]).write_text(file["text"])
    asked = ("--system", "dgx-h100", "--launch", tmp_path / "launch.sh", "--json")
    code, out, err = cli("predict", *asked)
    assert code in (0, 4), err
    read = json.loads(out)
    assert {key: read[key] for key in EQUAL} == {key: written[key] for key in EQUAL}


def test_images(tmp_path, cli):
    given = ("--system", "dgx-h100:software=megatron", "--dataset", "imagenet")
    layout = ("--model", "vit_l_16", "--pe", 8, "--strategy", "dp8 mb4 zero1")
    asked = (*given, *layout, "--global-batch", 256, "--launch", "megatron", "--json")
    written = json.loads(cli("explain", *asked)[1])
    (file,) = written["launch_files"]
    assert "pretrain_vision_classify.py" in file["text"]
    (tmp_path / "vit.sh").write_text(file["text"])
    read = json.loads(cli("predict", *given, "--launch", tmp_path / "vit.sh", "--json")[1])
    assert read["iteration_time"] == written["iteration_time"]


@pytest.mark.parametrize(
    ("framework", "model", "layout", "words"),
    [
        ("maxtext", LLAMA, "tp2 pp2 v4 dp16 mb1 zero3 recompute=blocks", "chunks 4"),
        ("maxtext", LLAMA, "dp64 mb1 zero2 recompute=blocks", "zero 2"),
        ("maxtext", GPT, "dp64 mb1 zero3 recompute=blocks", "norm"),
        ("maxtext", "deepseek_v3", "dp64 mb1 zero3 recompute=blocks", "2048"),
        ("accelerate", LLAMA, "tp2 dp32 mb1 zero3 sp", "sequence"),
        ("accelerate", MIXTRAL, "ep8 dp64 mb1 zero3", "expert 8"),
        ("torchtitan", "t5_11b", "dp64 mb1 zero3", "kind t5"),
        ("torchtitan", LLAMA, "cp2 dp32 mb1 zero3", "all_gather"),
        ("deepspeed", MIXTRAL, "tp2 dp32 mb1 zero1", "experts"),
        ("megatron", LLAMA, "dp64 mb1 zero1", "loss chunked"),
    ],
)
def test_what_its_parameters_do_not_state_is_refused(framework, model, layout, words, cli):
    given = ("--system", "dgx-h100", "--model", model, "--pe", 64, "--strategy", layout)
    loss = ("--loss", "chunked") if "chunked" in words else ()
    asked = (*given, *loss, "--global-batch", 256, "--launch", framework)
    code, out, err = cli("explain", *asked)
    assert (code, out) == (2, "")
    assert words in err
