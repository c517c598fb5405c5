"""Launch lines of a run, for a framework: what its table states, in files of its format.

What a framework cannot state is refused, never left out: its own lines, read back, are the run.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from paradl.grids.entries.layout_words import name_recompute
from paradl.grids.reading.errors import InputError, format_count
from paradl.grids.reading.yamlfile import write_plain
from paradl.kernels.search.stacks import STACKS
from paradl.sweep.answers.types.prediction import LaunchFile
from paradl.sweep.launching.conversions import CONVERSIONS, FLAVORS
from paradl.sweep.launching.described import describe_run
from paradl.sweep.launching.facts import Facts, Framework, Statement, load_framework
from paradl.sweep.launching.names import FRAMEWORKS
from paradl.sweep.launching.processes import write_torchrun
from paradl.sweep.launching.run import LayoutRun, refuse_run
from paradl.sweep.launching.stated import complete, fold, read_facts

Parameters = dict[str, object]
SCRIPTS = {"decoder": "gpt", "t5": "t5", "vit": "vision_classify"}
# Facts that lines have to state; sizes of the network only if a framework has parameters for them.
LAYOUT = (
    *("tensor", "context", "pipeline", "expert", "expert_tensor", "chunks", "group", "micro"),
    *("zero", "copies", "recompute", "schedule", "context_by", "attention", "loss", "precision"),
    *("global_batch", "length", "kind", "sequence"),
)
SIZES = (
    *("blocks", "features", "heads", "kv_heads", "hidden", "vocabulary", "norm", "gated", "bias"),
    *("positions", "experts", "active", "expert_hidden", "shared_hidden", "dense_blocks", "latent"),
    *("query_rank", "kv_rank", "window", "rope_scaling"),
)


def write_launch(name: str, run: LayoutRun) -> list[LaunchFile]:
    """Write the files to start a run. InputError: an unknown framework, or one that cannot."""
    if name not in FRAMEWORKS:
        raise InputError.unknown("framework", name, FRAMEWORKS, where="launch")
    framework = load_framework(name)
    if framework.stack in STACKS:
        refuse_run(framework.title, framework.stack, run)
    if name == "torchrun":
        return _write_own(run)
    facts = describe_run(run)
    _, unfold = CONVERSIONS[framework.conversion]
    parameters = framework.list_parameters(unfold(framework.unfold(facts)))
    _expect_same(framework, facts, parameters)
    return WRITERS[name](run, facts, parameters)


def _expect_same(framework: Framework, facts: Facts, parameters: Mapping[str, object]) -> None:
    """Raise InputError for the first fact that the framework's own lines do not state."""
    statements = [Statement(key, value) for key, value in parameters.items()]
    stated = read_facts(framework, statements).facts
    context = {name: facts[name] for name in ("pes", "blocks", "parts") if name not in stated}
    back = complete(fold(framework, context | stated), facts["pes"])
    has_sizes = any(row.name == "features" for row in framework.written.values())
    # Without a parameter of its own, the tokenizer states the vocabulary.
    unstated = {"vocabulary"} if back.get("vocabulary") is None else set()
    unstated |= {"expert_tensor"} if (facts.get("expert") or 1) == 1 else set()
    unstated |= {"kind"} if facts["kind"] == "decoder" else set()
    unstated |= {"sequence"} if facts["tensor"] == 1 else set()
    for name in (*LAYOUT, *(SIZES if has_sizes else ())):
        wanted, got = facts.get(name) or None, back.get(name) or None
        differs = wanted not in (None, got) or (name == "sequence" and wanted != got)
        if name not in unstated and differs:
            what = f"{framework.title} does not run {name} {wanted} here"
            raise InputError(what, where="launch", advice=f"take {got or 'another'}")


def write_flags(parameters: Mapping[str, object], dash: str = "-") -> list[str]:
    """Write parameters as flags, one per line."""
    plain = {k: " ".join(v) if isinstance(v, list) else v for k, v in parameters.items()}
    flags = {f"--{key.replace('_', dash)}": value for key, value in plain.items()}
    return [f if v is True else f"{f} {v}" for f, v in flags.items() if v is not False]


def _write_script(run: LayoutRun, facts: Facts, parameters: Parameters) -> list[LaunchFile]:
    """Write a script of Megatron-LM's flags."""
    lines = write_torchrun(
        *run.processes, f"pretrain_{SCRIPTS[facts['kind']]}.py", *write_flags(parameters)
    )
    if facts["kind"] == "t5" and not facts["gated"]:
        note = "# The network has ReLU; pretrain_t5.py computes GELU, at the same cost."
        return [lines | {"text": f"{note}\n{lines['text']}"}]
    return [lines]


def _write_bridge(run: LayoutRun, facts: Facts, parameters: Parameters) -> list[LaunchFile]:
    recipe = f"run_recipe.py --recipe {run.model.name}_pretrain_config"
    return [write_torchrun(*run.processes, recipe, *_write_overrides(parameters))]


def _write_nemo(run: LayoutRun, facts: Facts, parameters: Parameters) -> list[LaunchFile]:
    nodes = {"trainer.num_nodes": facts["nodes"], "trainer.devices": facts["per_node"]}
    lines = [f"nemo llm pretrain --factory {run.model.name}", *_write_overrides(nodes | parameters)]
    return [{"file": "launch.sh", "text": " \\\n  ".join(lines)}]


def _write_overrides(parameters: Mapping[str, object]) -> list[str]:
    """Write parameters as `model.tensor_model_parallel_size=8`, one per line."""
    words = {k: f"[{','.join(v)}]" if isinstance(v, list) else v for k, v in parameters.items()}
    return [f"{key}={'null' if value is None else value}" for key, value in words.items()]


def _write_primus(run: LayoutRun, facts: Facts, parameters: Parameters) -> list[LaunchFile]:
    named = {"framework": "megatron", "config": "pre_trainer.yaml", "model": "language_model.yaml"}
    plain = {k: v.strip("'") if isinstance(v, str) else v for k, v in parameters.items()}
    tree = {"exp_name": run.model.name, "modules": {"pre_trainer": named | {"overrides": plain}}}
    variables = f"NNODES={facts['nodes']} GPUS_PER_NODE={facts['per_node']}"
    script = f"{variables} EXP=experiment.yaml bash examples/run_pretrain.sh"
    return [
        {"file": "experiment.yaml", "text": write_plain(tree)},
        {"file": "launch.sh", "text": script},
    ]


def _write_deepspeed(run: LayoutRun, facts: Facts, parameters: Parameters) -> list[LaunchFile]:
    """Write DeepSpeed's JSON, and Megatron-DeepSpeed's flags for all else."""
    wide = facts["precision"] == "bf16"
    # DeepSpeed checks that the batch is the product of the next two and the replicas.
    config = {
        "train_batch_size": run.training.batch,
        "train_micro_batch_size_per_gpu": run.row["micro"],
        "gradient_accumulation_steps": run.passes,
        "zero_optimization": {"stage": run.zero},
        "bf16": {"enabled": wide},
        # `zero` stands for the bytes of ZeRO's paper, whose weights and gradients are fp16.
        "fp16": {"enabled": facts["precision"] == "zero"},
        # Gradients of bf16 are counted with 4 bytes; DeepSpeed would add them up in bf16.
        **({"data_types": {"grad_accum_dtype": "fp32"}} if wide else {}),
    }
    flags = [line.replace("d-config", "d_config") for line in write_flags(parameters)]
    script = write_torchrun(*run.processes, "pretrain_gpt.py", *flags)
    return [{"file": "ds_config.json", "text": json.dumps(config, indent=2)}, script]


def _nest(parameters: Mapping[str, object]) -> dict[str, Any]:
    """Return parameters as tables, by the dots of their names."""
    tables: dict[str, Any] = {}
    for key, value in parameters.items():
        table, _, name = key.rpartition(".")
        (tables.setdefault(table, {}) if table else tables)[name] = value
    return tables


def _write_toml(run: LayoutRun, facts: Facts, parameters: Parameters) -> list[LaunchFile]:
    """Write TOML tables, without [model], which names a network of torchtitan's own list."""
    # Strings and numbers of JSON are those of TOML.
    text = "\n\n".join(
        "\n".join([f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())])
        for name, table in _nest(parameters).items()
    )
    script = write_torchrun(*run.processes, "-m torchtitan.train", "--job.config_file layout.toml")
    return [{"file": "layout.toml", "text": text}, script]


def _write_module(run: LayoutRun, facts: Facts, parameters: Parameters) -> list[LaunchFile]:
    """Write a function in Python that changes a configuration of torchtitan's own list."""
    tables, name = _nest(parameters), run.model.name
    known = name in FLAVORS
    module = FLAVORS[name][0] if known else name.partition("_")[0]
    mine = "  # not of torchtitan: yours"
    name = f"{name}_671b" if name == "deepseek_v3" else name
    again = tables.pop("activation_checkpoint", "SelectiveAC.Config")
    chunked = tables.pop("loss", None) is not None

    def call(table: str) -> str:
        return ", ".join(f"{key}={value!r}" for key, value in tables[table].items())

    imports = {
        "components.loss": "ChunkedLossWrapper" if chunked else "",
        "config": "CompileConfig, ParallelismConfig"
        if "compile" in tables
        else "ParallelismConfig",
        "distributed.activation_checkpoint": "" if again == "None" else again.partition(".")[0],
        f"models.{module}.config_registry": name + ("" if known else mine),
    }
    lines = [
        *(f"from torchtitan.{where} import {what}" for where, what in imports.items() if what),
        *("", "", "def layout():", f"    config = {name}()"),
        f"    config.parallelism = ParallelismConfig({call('parallelism')})",
        *(f"    config.training.{key} = {value!r}" for key, value in tables["training"].items()),
        f"    config.activation_checkpoint = {again if again == 'None' else f'{again}()'}",
        "    loss = config.loss.loss_fn",
        f"    config.loss = {'ChunkedLossWrapper.Config(loss_fn=loss)' if chunked else 'loss'}",
    ]
    if "compile" in tables:
        lines.append(f"    config.compile = CompileConfig(enable=True, {call('compile')})")
    if run.stages > 1 or run.row["expert"] > 1:  # whose exchanges CUDA graphs do not have
        lines.append("    config.training.disable_cuda_graphs = True")
    text = "\n".join([*lines, "    return config", ""])
    start = ("-m torchtitan.train", "--module layout --config layout")
    return [{"file": "layout.py", "text": text}, write_torchrun(*run.processes, *start)]


def _write_accelerate(run: LayoutRun, facts: Facts, parameters: Parameters) -> list[LaunchFile]:
    """Write Accelerate's configuration, and the arguments of a script with Trainer."""
    here = ("per_device", "gradient_acc", "max_length", "model_name")
    arguments = {key: value for key, value in parameters.items() if key.startswith(here)}
    config = _nest({key: value for key, value in parameters.items() if key not in arguments})
    lines = ["accelerate launch --config_file accelerate.yaml train.py"]
    text = " \\\n  ".join([*lines, *write_flags(arguments, "_")])
    return [
        {"file": "accelerate.yaml", "text": write_plain(config)},
        {"file": "launch.sh", "text": f"# train.py is yours, with Hugging Face's Trainer.\n{text}"},
    ]


def _write_maxtext(run: LayoutRun, facts: Facts, parameters: Parameters) -> list[LaunchFile]:
    """Write parameters over MaxText's base.yml."""
    text = write_plain({"base_config": "base.yml", "hardware": "gpu"} | parameters)
    script = "python3 -m MaxText.train layout.yml run_name=layout"
    return [{"file": "layout.yml", "text": text}, {"file": "launch.sh", "text": script}]


# Calls in a script of one's own, by stage of ZeRO.
WRAPS = (
    "DistributedDataParallel(model)",
    "DistributedDataParallel(model), ZeroRedundancyOptimizer(model.parameters(), AdamW)",
    # Weights stay gathered after the forward pass, as in ZeRO 2.
    "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)",
    "FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.FULL_SHARD)",
)


def _write_own(run: LayoutRun) -> list[LaunchFile]:
    """Write a torchrun line for the user's own script, with its DDP or FSDP call as a comment."""
    row, wrap = run.row, WRAPS[run.zero]
    # HSDP: copies of the shards, each over fewer ranks.
    if run.zero == 3 and row["shard"] < row["data"]:
        mesh = f"({row['data'] // row['shard']}, {row['shard']})"
        wrap = wrap.replace("FULL_SHARD", "HYBRID_SHARD").replace(
            "(model,", f'(model, device_mesh=init_device_mesh("cuda", {mesh}),'
        )
    lines = [
        "# train.py is yours. In it:",
        f"# {wrap}",
        f"# {format_count(row['micro'], 'sequence')} of {run.training.length} tokens per pass, "
        f"{format_count(run.passes, 'pass', 'passes')} per iteration; {run.precision}; "
        f"recompute {name_recompute(row['recompute'])}",
    ]
    script = write_torchrun(*run.processes, "train.py")
    return [script | {"text": "\n".join([*lines, script["text"]])}]


WRITERS: Mapping[str, Callable[[LayoutRun, Facts, Parameters], list[LaunchFile]]] = {
    "megatron": _write_script,
    "megatron-bridge": _write_bridge,
    "nemo": _write_nemo,
    "primus": _write_primus,
    "torchtitan": _write_module,
    "torchtitan-0.2": _write_toml,
    "deepspeed": _write_deepspeed,
    "accelerate": _write_accelerate,
    "maxtext": _write_maxtext,
}
