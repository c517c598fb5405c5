"""What cases of tables do not say: sizes that follow from others, meshes, and texts of lists.

Each framework's table names a conversion, a pair of functions: from its facts to ours, and back.
"""

import re
from collections.abc import Callable
from math import gcd, isqrt, prod

from paradl.grids.reading.errors import InputError
from paradl.sweep.launching.facts import Facts, load_table
from paradl.sweep.launching.networks import LLAMA, find_name, find_pattern

# Tokenizers that fix a vocabulary.
VOCABULARIES = {"GPT2BPETokenizer": 50257, "Llama2Tokenizer": 32000, "Llama3Tokenizer": 128256}
# Names of precisions of recipes, such as bf16_with_fp8_current_scaling_mixed.
MIXED = {
    "nvfp4": "nvfp4|fp4",
    "mxfp8": r"mxfp8|fp8_mx|linear\.mx",
    "fp8": "fp8",
    "bf16": "bf(loat)?16",
    "amp": "16",
}


def fold_megatron(facts: Facts) -> Facts:
    """Return our facts of Megatron's."""
    one, folded = facts.get, dict(facts)
    if facts.get("mixed"):
        mixed = str(one("mixed")).lower().replace("-", "_")
        found = (ours for ours, theirs in MIXED.items() if re.search(theirs, mixed))
        folded["precision"] = next(found, "fp32")
    if one("granularity") == "selective":
        modules = one("modules")
        words = modules if isinstance(modules, list) else re.findall(r"\w+", str(modules or ""))
        folded["recompute"] = "+".join(map(str, words)) or "core_attn"
    if "distributed" in str(one("optimizer")) and not one("zero"):
        folded["zero"] = 1
    elif str(one("optimizer")).startswith("fused_adam"):  # NeMo 1
        folded["zero"] = 0
    if one("stages"):
        stages = one("stages")
        # `Et*3|(tt|)*29m|L`
        wide = re.sub(r"\((.{,40}?)\)\*(\d{1,3})", lambda m: m[1] * int(m[2]), str(stages))
        parts = len(stages) if isinstance(stages, list) else wide.count("|") + 1
        folded["chunks"] = parts // (one("pipeline") or 1)
    if one("chunk_blocks"):  # the embedding and the loss may count as a block each
        folded["chunk_less"] = bool(one("first_less")) + bool(one("last_less"))
    if one("no_stages"):
        folded["pipeline"] = 1
    if one("activation"):
        folded["gated"] = "glu" in str(one("activation"))
    if re.search(r"(Llama|Mistral|Mixtral|Qwen)\w*Config$", str(one("model_name"))):  # NeMo 2
        folded |= LLAMA | {"tied": False}
    return folded | _fold_network(facts | folded)


def _fold_network(facts: Facts) -> Facts:
    one = facts.get
    kind = "t5" if one("encoder_blocks") else "vit" if one("patch") else one("kind") or "decoder"
    folded = Facts(kind=kind, blocks=one("encoder_blocks") or one("blocks"))
    if kind == "t5":
        lengths = [n for n in (one("length"), one("decoder_length")) if n]
        folded["two_lengths"] = len(set(lengths)) > 1
    is_grouped = one("grouped") is not False and one("kv_heads")
    folded["kv_heads"] = one("kv_heads") if is_grouped else one("heads")
    if one("rotary_flag"):
        folded["positions"] = "rotary"
    folded["vocabulary"] = one("vocabulary") or VOCABULARIES.get(str(one("tokenizer")))
    if one("tokenizer_model"):
        folded["vocabulary_of"] = find_name(str(one("tokenizer_model")))
    if one("hidden") is None and one("features") and not one("expert_hidden"):
        wide = 4 * facts["features"]
        folded["hidden"] = wide * 2 // 3 // 64 * 64 if one("gated") else wide
    if one("experts"):
        # Experts are as wide as other linear layers unless it is said otherwise.
        folded["expert_hidden"] = one("expert_hidden") or (facts | folded).get("hidden")
        if one("pattern") is not None:
            folded |= find_pattern(_read_pattern(one("pattern"), int(folded["blocks"] or 0)))
    if window := re.findall(r"\d+", str(one("window") or "")):
        folded["window"] = int(window[0]) + 1
    return folded


def _read_pattern(pattern: object, blocks: int) -> list[int]:
    """Read `2`, `[0,1,1]` or `([0]*3+[1]*58)` as a list of blocks with experts."""
    if re.fullmatch(r"\d{1,4}", text := str(pattern)):
        return [int(block % int(text) == 0) for block in range(blocks)]
    found: list[int] = []
    for inside, times in re.findall(r"\[([01,\s]+)\](?:\s*\*\s*(\d{1,4}))?", text):
        found += [int(digit) for digit in re.findall(r"[01]", inside)] * int(times or 1)
    if len(found) != blocks:
        what = f"expected {blocks} blocks, got {len(found)}"
        raise InputError(what, where="moe_layer_freq", advice="write it like [0]*3+[1]*58")
    return found


def unfold_megatron(facts: Facts) -> Facts:
    """Return Megatron's facts of ours."""
    one, kind, stages = facts.get, facts["kind"], facts["pipeline"]
    grouped = not one("latent") and one("kv_heads") != one("heads")
    again, pattern = facts["recompute"], one("pattern")
    base = facts["rotary_base"] if one("positions") == "rotary" else None
    near = facts | {
        # The oracle has no dropout.
        **{"attention_dropout": 0.0, "hidden_dropout": 0.0},
        **{"grouped": grouped, "kv_heads": one("kv_heads") if grouped else None},
        "copies": one("copies") if facts["copies"] > 1 else None,
        # Of experts if all blocks have them.
        "hidden": one("hidden") or one("expert_hidden"),
        "rotary_base": None if base in (None, 1e4) else round(base),
        "rotary_flag": one("positions") == "rotary",
        "norm_epsilon": one("norm_epsilon") if one("norm_epsilon") != 1e-5 else None,
        "shared_hidden": one("shared_hidden") or None,
        "window": f"'({facts['window'] - 1},0)'" if one("window") else None,
        "no_stages": stages == 1,
        "deepspeed": True,
        "deepspeed_config": "ds_config.json",
    }
    if again not in ("none", "blocks"):
        near |= {"granularity": "selective", "modules": again.split("+")}
    if pattern:  # quoted and without spaces, so that a shell leaves it whole
        near["pattern"] = 1 if all(pattern) else f"'{pattern}'".replace(" ", "")
    if facts["is_uneven"]:
        # Uneven parts, chunks included, are written out; the first ones have one block more.
        least, more = divmod(facts["blocks"], facts["parts"])
        parts = (f"t*{least + (part < more)}" for part in range(facts["parts"]))
        near |= {"stages": f"'E{'|'.join(parts)}L'", "chunks": None}
    if one("latent"):
        near |= {"normalise_heads": True, "head_features": None}
    if kind == "t5":
        blocks = {"encoder_blocks": one("blocks"), "decoder_blocks": one("blocks")}
        near |= blocks | {"decoder_length": one("length"), "blocks": None}
    if kind == "vit":
        near |= dict.fromkeys(("norm", "positions", "tied", "vocabulary"))
        # Patches of a square, and one token of the class.
        extent = facts["patch"] * isqrt(facts["length"] - 1)
        near |= {"height": extent, "width": extent, "longest": one("length")}
    return near


# torchtitan's names of networks of the catalogue.
FLAVORS = {
    **{f"llama3_{size.lower()}": ("llama3", size) for size in ("8B", "70B", "405B")},
    "qwen3_30b_a3b": ("qwen3", "30B-A3B"),
    "deepseek_v3": ("deepseek_v3", "671B"),
}


def fold_torchtitan(facts: Facts) -> Facts:
    """Return our facts of torchtitan's."""
    one, stages = facts.get, facts.get("pipeline") or 1
    staged = stages > 1
    is_sharded = one("shard_degree") != 1 or (one("context") or 1) > 1
    # Weights that stay gathered after the forward pass are ZeRO 2; so they do by default in stages.
    stays = one("reshard") == "never" or (one("reshard") == "default" and staged)
    converted = str(one("converters") or "").lower().replace("float8", "fp8")
    narrow = (ours for ours, words in MIXED.items() if re.search(words, converted))
    less = int(one("first_less") or 0) + int(one("last_less") or 0)
    part = one("stage_micro")
    if flights := one("flights"):
        part = facts["local_batch"] // flights
    return facts | {
        "zero": (2 if stays else 3) if is_sharded else 0,
        "copies": one("replicate") if is_sharded else 1,
        "micro": part if staged else one("local_batch"),
        "sequence": one("sequence") is not False,
        "global_batch": None if one("global_batch") == -1 else one("global_batch"),
        "precision": next(narrow, one("precision")) if converted else one("precision"),
        "chunk_less": less if one("chunk_blocks") else None,
        # Looped schedules have two parts per stage unless layers of one are stated.
        "chunks": 2 if one("looped") == "Interleaved1F1B" else None,
        "model_name": one("model_name")
        or " ".join(str(one(name)) for name in ("module", "flavor") if one(name)),
    }


def unfold_torchtitan(facts: Facts) -> Facts:
    """Return torchtitan's facts of ours."""
    stages, less = facts["pipeline"], int(facts["first_less"])
    staged = stages > 1
    # torchtitan multiplies its shard degree by the context degree itself.
    shard = facts["shard"] // facts["context"] if facts["zero"] else 1
    parts = {
        **{"first_less": less, "last_less": less, "stage_micro": facts["micro"]},
        "chunk_blocks": (facts["blocks"] + 2 * less) // facts["parts"],
    }
    near = (
        facts
        | (parts if staged else dict.fromkeys(parts))
        | {
            "replicate": facts["data"] // shard,
            "shard_degree": shard,
            "reshard": "always" if facts["zero"] == 3 else "never",
            # Only a pipeline cuts it into micro-batches; without one torchtitan accumulates.
            "local_batch": facts["micro"] * (facts["accumulate"] if staged else 1),
            "overlap_tensor": facts["tensor"] > 1 and facts["overlap_tensor"],
            "sequence": facts["sequence"] or facts["tensor"] == 1,
            "option": None,
            **dict(zip(("module", "flavor"), FLAVORS.get(facts["name"], ()), strict=False)),
            "expert_tensor": facts["expert_tensor"] if (facts.get("expert") or 1) > 1 else None,
        }
    )
    if facts.get("chunks"):
        near["looped"] = "Interleaved1F1B"
    return near


def fold_accelerate(facts: Facts) -> Facts:
    """Return our facts of Accelerate's, Trainer's and DeepSpeed's."""
    one = facts.get
    words, kind = str(one("strategy") or "").upper(), str(one("distributed_type")).upper()
    version_2 = one("fsdp_version") == 2 or one("reshard") is not None or bool(one("shard_size"))
    zero, software = one("zero") or 0, "ddp"
    stages = {"SHARD_GRAD_OP": 2, "NO_SHARD": 0, "FULL_SHARD": 3, "HYBRID": 3, "1": 3, "2": 2}
    if words or version_2 or kind == "FSDP":
        usual = 2 if one("reshard") is False else 3
        zero = next((stage for word, stage in stages.items() if word in words), usual)
        software = "fsdp"
    elif zero or kind == "DEEPSPEED":
        software = "deepspeed"
    elif kind == "MEGATRON_LM":
        zero, software = int(bool(one("distributed"))), "megatron"
    return facts | {
        "zero": zero,
        "software": software,
        "offload": one("offload") or "OFFLOAD" in words,
        "copies": one("replicate") or 1,
        "shard_of_node": "HYBRID" in words and not one("replicate"),
        "adapter": one("adapter") if one("adapter") not in ("full", "freeze") else None,
    }


def unfold_accelerate(facts: Facts) -> Facts:
    """Return Accelerate's facts of ours: FSDP 2 and its mesh, or DDP."""
    hub = load_table("networks")["hub"]
    facts = facts | {"model_name": hub.get(facts["name"], facts["name"])}
    if not facts["zero"]:
        return facts | {"tensor": None, "context": None}
    shard = facts["shard"] // facts["context"]
    return facts | {"replicate": facts["data"] // shard, "shard_size": shard}


# Axes of MaxText's meshes, and our degrees.
AXES = {
    **{"data": "data", "fsdp": "fsdp", "fsdp_transpose": "fsdp", "tensor": "tensor"},
    **{"tensor_transpose": "tensor", "tensor_sequence": "sequenced", "context": "context"},
    **{"sequence": "context", "expert": "expert", "pipeline": "pipeline"},
}


def fold_maxtext(facts: Facts) -> Facts:
    """Return our facts of MaxText's: an axis has degrees inside of slices and between them."""
    one, degrees, rest = facts.get, dict.fromkeys(AXES.values(), 1), set[str]()
    for mesh in ("ici", "dcn"):
        for axis, ours in AXES.items():
            size = int(one(f"{mesh}_{axis}") or 1)
            rest |= {ours} if size == -1 else set()
            degrees[ours] *= max(size, 1)
    if others := rest - {"data", "fsdp"}:
        what = f"-1 is not modelled for {', '.join(others)}"
        raise InputError(what, where="parallelism", advice="state the number")
    has_fsdp = degrees["fsdp"] > 1 or "fsdp" in rest
    # With slices of other axes, -1 of data is what is left: 1.
    rest -= {"data"} if any((one(f"dcn_{axis}") or 1) > 1 for axis in AXES) else set()
    pes = one("pes") or (None if rest else prod(degrees.values()))
    # It counts samples of a device, of which those that share a sequence have as many together.
    shared = degrees["tensor"] * degrees["sequenced"] * degrees["context"]
    micro = (one("micro") or 0) * shared
    experts = one("expert_count") if (one("expert_count") or 1) > 1 else None
    return (
        facts
        | degrees
        | {
            "pes": pes,
            "partly": "save" in str(one("policy")),
            "micro": int(micro) if micro == int(micro) else micro,
            "local_batch": micro * degrees["pipeline"],
            "tensor": degrees["tensor"] * degrees["sequenced"],
            "sequence": degrees["sequenced"] > 1,
            # Ranks of experts are data ranks, too.
            "zero": 3 if has_fsdp else 0,
            "copies": degrees["data"] if has_fsdp else 1,
            "experts": experts,
            **LLAMA,
            "kind": "decoder",
            "expert_hidden": one("hidden") if experts else None,
            "model_name": one("model_name") if one("model_name") != "default" else None,
        }
    )


def unfold_maxtext(facts: Facts) -> Facts:
    """Return MaxText's facts of ours; a node is a slice."""
    one, expert = facts.get, facts.get("expert") or 1
    shard = facts["shard"] // facts["context"] if facts["zero"] else 1
    micro, shared = facts["micro"], facts["tensor"] * facts["context"]
    # Nodes hold what is outermost: copies, shards, then the rest.
    copies, parts = facts["data"] // shard, shard // expert
    between = gcd(copies, facts["nodes"])
    beyond = gcd(parts, facts["nodes"] // between)
    return facts | {
        **{"dcn_data": between, "ici_data": copies // between},
        **{"dcn_fsdp": beyond, "ici_fsdp": parts // beyond},
        "ici_tensor": 1 if facts["sequence"] else facts["tensor"],
        "ici_tensor_sequence": facts["tensor"] if facts["sequence"] else 1,
        **{"ici_context": facts["context"], "ici_expert": expert},
        "ici_pipeline": facts["pipeline"],
        "micro": micro // shared if micro % shared == 0 else micro / shared,
        "expert_count": one("experts") or 1,
        "hidden": one("hidden") or one("expert_hidden"),
        "head_features": one("head_features") or facts["features"] // facts["heads"],
    }


Conversion = tuple[Callable[[Facts], Facts], Callable[[Facts], Facts]]
CONVERSIONS: dict[str, Conversion] = {
    "megatron": (fold_megatron, unfold_megatron),
    "torchtitan": (fold_torchtitan, unfold_torchtitan),
    "accelerate": (fold_accelerate, unfold_accelerate),
    "maxtext": (fold_maxtext, unfold_maxtext),
}
