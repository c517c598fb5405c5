"""`paradl explain --launch`: documented flags, degrees whose product is the PEs, and refusals."""

import json
import math
import re
import tomllib

import pytest

MEGATRON = {  # core 0.16.1's configuration, and flags of pretrain_gpt.py (not checked)
    *("tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size"),
    *("num-virtual-stages-per-pipeline-rank", "pipeline-model-parallel-layout", "cp-comm-type"),
    *("microbatch-group-size-per-virtual-pipeline-stage", "expert-model-parallel-size"),
    *("account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split"),
    *("expert-tensor-parallel-size", "sequence-parallel", "use-distributed-optimizer"),
    *("overlap-grad-reduce", "overlap-param-gather", "tp-comm-overlap"),
    *("moe-flex-dispatcher-backend", "overlap-moe-expert-parallel-comm"),
    *("num-distributed-optimizer-instances", "use-megatron-fsdp", "ckpt-format"),
    *("data-parallel-sharding-strategy", "no-gradient-accumulation-fusion"),
    *("micro-batch-size", "global-batch-size", "seq-length", "max-position-embeddings"),
    *("bf16", "fp16", "fp8-format", "attention-backend", "attention-dropout", "hidden-dropout"),
    *("recompute-granularity", "recompute-modules", "recompute-method", "recompute-num-layers"),
    *("num-layers", "hidden-size", "ffn-hidden-size", "num-attention-heads", "kv-channels"),
    *("group-query-attention", "num-query-groups", "swiglu", "disable-bias-linear"),
    *("untie-embeddings-and-output-weights", "add-qkv-bias", "qk-layernorm", "normalization"),
    *("position-embedding-type", "vocab-size", "num-experts", "moe-router-topk"),
    *("moe-ffn-hidden-size", "moe-shared-expert-intermediate-size", "moe-layer-freq"),
    *("moe-grouped-gemm", "moe-token-dispatcher-type", "norm-epsilon"),
    *("rotary-base", "use-rope-scaling", "rope-scaling-factor"),
}
MEGATRON_DEEPSPEED = {  # of its README and examples (not checked)
    "vocab-size",
    *("deepspeed", "deepspeed_config", "zero-stage", "no-pipeline-parallel"),
    *("tensor-model-parallel-size", "pipeline-model-parallel-size", "sequence-parallel"),
    *("ds-sequence-parallel-size", "micro-batch-size", "global-batch-size", "bf16", "fp16"),
    *("use-flash-attn-v2", "attention-dropout", "hidden-dropout", "checkpoint-activations"),
    *("checkpoint-num-layers", "deepspeed-activation-checkpointing", "num-layers", "hidden-size"),
    *("ffn-hidden-size", "num-attention-heads", "num-key-value-heads", "kv-channels"),
    *("seq-length", "max-position-embeddings", "swiglu", "disable-bias-linear", "normalization"),
    *("untie-embeddings-and-output-weights", "use-rotary-position-embeddings"),
}
TITAN = {  # torchtitan 0.2.0, torchtitan/config/job_config.py
    "parallelism": {
        *("data_parallel_replicate_degree", "data_parallel_shard_degree"),
        *("fsdp_reshard_after_forward", "tensor_parallel_degree", "context_parallel_degree"),
        "enable_async_tensor_parallel",
        *("context_parallel_rotate_method", "pipeline_parallel_degree"),
        *("pipeline_parallel_schedule", "pipeline_parallel_microbatch_size"),
        *("pipeline_parallel_layers_per_stage", "pipeline_parallel_first_stage_less_layers"),
        *("pipeline_parallel_last_stage_less_layers", "expert_parallel_degree"),
        "expert_tensor_parallel_degree",
    },
    "training": {
        *("local_batch_size", "global_batch_size", "seq_len", "mixed_precision_param"),
    },
    "activation_checkpoint": {"mode"},
}


SYSTEM = ("--system", "dgx-h100")


def launch(cli, stack, model, pe, layout, *options):
    """The files, and the flags of the script with their values."""
    given = ("--strategy", layout, *SYSTEM, "--global-batch", 256, *options)
    asked = ("--model", model, "--pe", pe, *given, "--launch", stack, "--format", "json")
    code, out, err = cli("explain", *asked)
    assert code in (0, 4), err
    files = {row["file"]: row["text"] for row in json.loads(out)["launch_files"]}
    words = re.findall(r"^ +--([a-z0-9_-]+)(?: (.*?))??(?: \\)?$", files["launch.sh"], re.MULTILINE)
    return files, dict(words)


@pytest.mark.parametrize(
    ("model", "pe", "layout", "options"),
    [
        ("llama2_70b", 64, "tp8 pp4 dp2 mb1 zero1 recompute=core_attn", ()),
        ("llama2_70b", 64, "tp4 pp4 v5 dp4 mb1 zero1 sp recompute=blocks", ()),
        ("llama2_70b", 64, "tp8 pp3 dp2 mb1 zero1", ("--global-batch", 252)),
        ("llama2_70b", 64, "tp8 dp8 mb1 zero3 sp recompute=blocks", ()),
        ("llama3_8b", 16, "tp2 cp2 dp4 mb1 zero1 sp", ("--context", "all_to_all")),
        ("gpt3_175b", 256, "tp8 pp16 dp2 mb1 zero1 sp", ("--precision", "amp")),
        ("qwen3_30b_a3b", 32, "tp2 ep8 etp1 pp2 dp8 mb1 zero1 sp recompute=moe_act", ()),
    ],
)
def test_megatron(model, pe, layout, options, cli):
    pe = 48 if "pp3" in layout else pe
    files, flags = launch(cli, "megatron", model, pe, layout, *options)
    assert set(flags) <= MEGATRON
    assert f"--nnodes={pe // 8} --nproc-per-node=8" in files["launch.sh"]
    degrees = ("tensor-model-parallel-size", "pipeline-model-parallel-size")
    inside = math.prod(int(flags[name]) for name in (*degrees, "context-parallel-size"))
    data = int(re.findall(r"dp(\d+)", layout)[0])
    assert inside * data == pe
    assert int(flags["global-batch-size"]) % (data * int(flags["micro-batch-size"])) == 0
    assert ("use-distributed-optimizer" in flags) == ("zero" in layout)
    assert ("overlap-param-gather" in flags) == ("zero" in layout)
    assert ("sequence-parallel" in flags) == ("sp" in layout.split())
    if "pipeline-model-parallel-layout" in flags:
        stages = flags["pipeline-model-parallel-layout"]
        assert sum(map(int, re.findall(r"t\*(\d+)", stages))) == int(flags["num-layers"])
        assert stages.count("|") == int(flags[degrees[1]]) - 1


def test_sizes_of_networks(cli):
    """Of config.json and papers: Llama 2 70B, Qwen3-30B-A3B."""
    _, flags = launch(cli, "megatron", "llama2_70b", 64, "tp8 pp4 dp2 mb1 zero1")
    dense = {"num-layers": "80", "hidden-size": "8192", "ffn-hidden-size": "28672"}
    heads = {"num-attention-heads": "64", "num-query-groups": "8", "swiglu": ""}
    assert (dense | heads).items() <= flags.items()
    assert "kv-channels" not in flags
    _, flags = launch(cli, "megatron", "qwen3_30b_a3b", 32, "tp1 ep8 pp2 dp16 mb1 zero1")
    assert {
        **{"num-experts": "128", "moe-router-topk": "8", "moe-ffn-hidden-size": "768"},
        **{"kv-channels": "128", "qk-layernorm": "", "num-query-groups": "4", "swiglu": ""},
    }.items() <= flags.items()
    _, flags = launch(cli, "megatron", "gpt3_175b", 256, "tp8 pp16 dp2 mb1 zero1")
    assert not {"swiglu", "disable-bias-linear", "group-query-attention"} & set(flags)
    assert "normalization" not in flags  # LayerNorm is its default


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
SCALED = {"use-rope-scaling": "", "rope-scaling-factor": "8.0"}


OVERLAPS = {"overlap-grad-reduce", "overlap-param-gather", "tp-comm-overlap"}
OF_EXPERTS = {
    *("moe-grouped-gemm", "moe-flex-dispatcher-backend", "overlap-moe-expert-parallel-comm")
}


@pytest.mark.parametrize(
    ("software", "expected"),
    [
        ("megatron", OVERLAPS | OF_EXPERTS),
        (
            "megatron,overlap_tensor=off,sends_once=off",
            {*OVERLAPS, *OF_EXPERTS} - {*("tp-comm-overlap", "moe-flex-dispatcher-backend")},
        ),
        (
            "megatron,overlap_gradients=off,overlap_experts=off",
            {*("tp-comm-overlap", "moe-grouped-gemm", "moe-flex-dispatcher-backend")},
        ),
        ("megatron-2021", {"moe-grouped-gemm"}),
        ("ddp,grouped_experts=off", {"overlap-grad-reduce", "overlap-param-gather"}),
    ],
)
def test_flags_switch_what_the_prediction_assumes(software, expected, cli):
    layout, system = "tp2 ep8 pp2 v2 dp8 mb1 zero1 sp", f"dgx-h100:software={software}"
    _, flags = launch(cli, "megatron", "mixtral_8x7b", 32, layout, "--system", system)
    assert {name for name in flags if name in OVERLAPS | OF_EXPERTS} == expected
    sends_once = "moe-flex-dispatcher-backend" in expected
    assert flags["moe-token-dispatcher-type"] == ("flex" if sends_once else "alltoall")


@pytest.mark.parametrize("layout", ["tp2 ep8 pp2 dp8 mb1 zero1 sp", "ep8 dp8 mb1 recompute=blocks"])
def test_megatron_is_not_asked_for_an_overlap_that_it_refuses(layout, cli):
    system = ("--system", "dgx-h100:software=megatron")
    pes = 32 if "pp2" in layout else 8
    _, flags = launch(cli, "megatron", "mixtral_8x7b", pes, layout, *system)
    assert "overlap-moe-expert-parallel-comm" not in flags


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"rope_theta": 10000.0, "rms_norm_eps": 1e-5}, {}),
        ({"rope_theta": 500000.0, "rms_norm_eps": 1e-5}, {"rotary-base": "500000"}),
        ({}, {"norm-epsilon": "1e-06"}),  # the default of Transformers' class
        ({"rms_norm_eps": 1e-5, "rope_scaling": LLAMA3}, SCALED),
        (
            {"rms_norm_eps": 1e-5, "rope_parameters": LLAMA3 | {"rope_theta": 5e5}},
            SCALED | {"rotary-base": "500000"},
        ),
        ({"rms_norm_eps": 1e-5, "rope_scaling": {"type": "default"}}, {}),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope_scaling yarn"),
        ({"rope_scaling": LLAMA3 | {"low_freq_factor": 2.0}}, "rope_scaling llama3 of other"),
    ],
)
def test_megatron_has_the_constants_of_a_config(stated, expected, tmp_path, cli):
    """Those that its defaults would get wrong; what it does not know is refused."""
    sizes = {"hidden_size": 512, "intermediate_size": 1024, "vocab_size": 32000}
    layers = {"num_attention_heads": 8, "num_hidden_layers": 2, "model_type": "llama"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**sizes, **layers, **stated}))
    if isinstance(expected, str):
        given = ("--pe", 8, *SYSTEM, "--global-batch", 64, "--strategy", "dp8")
        assert expected in cli("explain", "--model", path, *given, "--launch", "megatron")[2]
        return
    _, flags = launch(cli, "megatron", path, 8, "dp8 mb1 zero1")
    names = ("rotary-base", "use-rope-scaling", "rope-scaling-factor", "norm-epsilon")
    assert {name: flags[name] for name in names if name in flags} == expected


@pytest.mark.parametrize(
    ("pe", "layout", "options"),
    [
        (64, "tp8 dp8 mb1 zero3 sp recompute=blocks", ()),
        (64, "tp4 pp4 v4 dp4 mb1 zero3 sp recompute=blocks", ()),
        (64, "tp4 cp2 dp8 mb1 zero2 shard8 sp recompute=blocks", ("--context", "all_gather")),
    ],
)
def test_torchtitan(pe, layout, options, cli):
    files, _ = launch(cli, "torchtitan-0.2", "llama2_70b", pe, layout, *options)
    tables = tomllib.loads(files["layout.toml"])
    assert {name: set(table) <= TITAN[name] for name, table in tables.items()} == dict.fromkeys(
        TITAN, True
    )
    degrees, training = tables["parallelism"], tables["training"]
    replicas = degrees["data_parallel_replicate_degree"] * degrees["data_parallel_shard_degree"]
    inside = ("tensor_parallel_degree", "context_parallel_degree", "pipeline_parallel_degree")
    assert replicas * math.prod(degrees[name] for name in inside) == pe
    # Stages cut it into micro-batches; without them it is one, of mb1.
    whole, rest = divmod(training["global_batch_size"], replicas)
    assert (training["local_batch_size"], rest) == (whole if "pp" in layout else 1, 0)
    assert tables["activation_checkpoint"] == {"mode": "full"}


@pytest.mark.parametrize("layout", ["tp8 pp4 dp2 mb1 zero1 recompute=blocks", "tp8 dp8 mb2 zero3"])
def test_deepspeed(layout, cli):
    files, flags = launch(cli, "deepspeed", "llama2_70b", 64, layout)
    config = json.loads(files["ds_config.json"])
    assert set(flags) <= MEGATRON_DEEPSPEED
    inside = int(flags["tensor-model-parallel-size"]) * int(flags["pipeline-model-parallel-size"])
    steps = config["gradient_accumulation_steps"] * config["train_micro_batch_size_per_gpu"]
    assert config["train_batch_size"] == steps * 64 // inside == 256
    assert ("no-pipeline-parallel" in flags) == ("pp" not in layout)
    assert config["zero_optimization"]["stage"] == int(flags["zero-stage"]) > 0


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ("dp16 mb1 zero3 recompute=blocks", "FULL_SHARD"),
        ("dp16 mb1 zero3 shard8 recompute=blocks", "(2, 8)"),
        ("dp16 mb1 zero1 recompute=blocks", "ZeroRedundancyOptimizer"),
    ],
)
def test_torchrun(layout, words, cli):
    files, _ = launch(cli, "torchrun", "llama2_7b", 16, layout)
    assert words in files["launch.sh"]
    assert "16 passes" in files["launch.sh"]
    assert "torchrun --nnodes=2 --nproc-per-node=8" in files["launch.sh"]


def test_as_text(cli):
    layout = ("--strategy", "tp1 pp2 dp6 mb1 zero1", "--global-batch", 240)
    given = ("--model", "llama2_7b", "--pe", 12, *SYSTEM, *layout)
    code, out, _ = cli("explain", *given, "--launch", "megatron")
    assert code == 0
    assert "on the last node --nproc-per-node=4" in out
    assert "--nnodes=2" in out


@pytest.mark.parametrize(
    ("stack", "model", "layout", "words"),
    [
        ("megatron", "llama2_70b", "tp8 pp4 mb1 zero3", "zero3 with pp4"),
        ("megatron", "llama2_70b", "tp8 pp4 mb1 zero1 schedule=zb1p", "zb1p"),
        ("megatron", "llama2_70b", "tp8 pp4 mb1 zero1 recompute=full", "recompute=blocks"),
        ("torchtitan", "llama2_70b", "tp8 mb1 zero3 sp recompute=mlp", "recompute=mlp"),
        ("torchtitan", "llama2_70b", "tp8 pp4 v2 group8 mb1 zero3 sp", "group8"),
        ("torchtitan", "llama2_70b", "tp8 mb1 zero3", "add sp"),
        ("deepspeed", "llama2_70b", "tp8 pp4 v2 mb1 zero1", "v2"),
        ("deepspeed", "llama2_70b", "tp8 cp2 mb1 zero3 recompute=blocks", "all_to_all"),
        ("torchrun", "llama2_70b", "tp8 mb1 zero3 recompute=blocks", "more than data"),
    ],
)
def test_what_a_stack_cannot_run(stack, model, layout, words, cli):
    given = ("--model", model, "--pe", 64, *SYSTEM, "--global-batch", 1024, "--strategy", layout)
    code, out, err = cli("explain", *given, "--launch", stack)
    assert (code, out) == (2, "")
    assert words in err
