"""A launch script as the options of a question: `paradl explain --launch pretrain.sh`.

What the script leaves to the environment is asked for, never guessed; what it leaves to the
framework is named as that framework's default.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paradl.grids.entries.layout_words import write_layout
from paradl.grids.entries.software import SOFTWARE, SoftwareName, Switches, write_settings
from paradl.grids.library import find
from paradl.grids.reading.errors import InputError, add_place, shorten
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS, NODE, RECOMPUTE
from paradl.sweep.launching.facts import Facts, Framework, load_framework, load_table
from paradl.sweep.launching.names import FRAMEWORKS
from paradl.sweep.launching.networks import (
    describe_network,
    find_name,
    find_named,
    find_vocabulary,
    make_network,
)
from paradl.sweep.launching.sources import Sources
from paradl.sweep.launching.stated import (
    Stated,
    complete,
    count_inside,
    fold,
    is_harmless,
    read_facts,
)

# In the order in which scripts are recognised: those with signs of several frameworks first.
RECOGNISED = (
    *("maxtext", "torchtitan", "torchtitan-0.2", "primus", "megatron-bridge", "nanotron"),
    *("llm-foundry", "gpt-neox", "nemo", "deepspeed", "megatron", "accelerate"),
)
DEGREES = ("tensor", "context", "expert", "pipeline", "chunks", "micro", "zero")
# Facts whose defaults are named.
WORTH = (
    *("micro", "local_batch", "length", "precision", "mixed", "bf16", "backend", "kernel"),
    *("attention_dropout", "hidden_dropout", "again", "option", "recompute", "reshard"),
)
PRECISIONS = {
    *("bf16", "fp16", "fp8", "fp4", "mixed", "dtype", "precision", "quantization", "converters")
}
# Programs that start processes on one node by default.
STARTERS = {
    *("torchrun", "deepspeed", "accelerate", "torch.distributed.launch", "torch.distributed.run"),
    *("axolotl", "llamafactory-cli"),
}
# Degrees that a recipe decides unless they are stated over it.
RECIPES = ("tensor", "pipeline", "context", "micro")
USUAL = (("attention", "fused"), ("loss", "whole"), ("states", "usual"))
SETTINGS = ("attention", "context", "loss", "states", "offload")  # keys of a spec, too
SHOWN = (
    *("model", "system", "pe", "strategy", "global_batch", "batch", "sequence", "precision"),
    *SETTINGS,
)
CONFIGURES = re.compile("deepspeed|config_file|yaml_cfg")  # keys of files that state a layout
MOST_NOTE = 1500  # characters
Options = dict[str, Any]


@dataclass(frozen=True)
class LaunchScript:
    """What a launch script states. facts: of the run, by our names."""

    path: str
    framework: Framework
    facts: Facts
    stated: Stated
    sources: Sources

    def find_options(self, given: Mapping[str, Any]) -> Options:
        """Return the options that the script states; those that are given come first.

        InputError: what neither states, such as the number of PEs.
        """
        options = {name: value for name, value in given.items() if value not in (None, [])}
        sequence = options.get("sequence", self.facts.get("length"))
        self._refuse_missing(options)
        if "dataset" not in options:
            self._wait_for("length", "--sequence", options, "sequence")
        self.facts["bare_adapter"] = self.facts.get("adapter")
        if "model" not in options:
            options["model"] = self._add_adapter(self._find_model(int(sequence or 0)))
        pes = options.setdefault("pe", options.get("pe") or self._count_pes())
        count = int(pes) if str(pes).isdecimal() else None
        known = {name: value for name, value in self.facts.items() if value is not None}
        known |= {"chunk_blocks": None} if "strategy" in options else {}
        facts = complete(self.facts | _find_sizes(options["model"]) | known, count)
        self.facts["some_blocks"] = facts.get("some_blocks")
        self._refuse_recipe(options)
        if "strategy" not in options:
            options["strategy"] = self._write_layout(facts, count)
        if not {"batch", "global_batch"} & {*options}:
            if self.stated.open.get("global_batch") != "auto" or not facts.get("global_batch"):
                self._wait_for("global_batch", "--global-batch", options)
            if facts.get("global_batch"):
                options["global_batch"] = str(int(facts["global_batch"]))
        if "dataset" not in options and facts.get("kind") != "vit":
            if not sequence:
                raise self._stop("no length of sequences", "give --sequence")
            options.setdefault("sequence", str(sequence))
        # Of two that a file leaves to Trainer, one is stated.
        has_one = facts.get("bf16") or facts.get("fp16")
        for fact in () if has_one else ("bf16", "fp16", "mixed"):
            self._wait_for(fact, "--precision", options, "precision")
        if facts.get("precision") and ":precision" not in str(options.get("system")):
            options.setdefault("precision", facts["precision"])
        found = {name: facts.get(name) for name in ("attention", "loss", "states")}
        found["offload"] = "states" if facts.get("offload") else None
        found["context"] = facts.get("context_by") if facts.get("context", 1) > 1 else None
        for name, value in found.items():
            # What is usual here needs no option.
            if value is not None and (name, value) not in USUAL:
                options.setdefault(name, value)
        if "system" in options:
            options["system"] = self._add_software(str(options["system"]))
        return options

    def _stop(self, what: str, advice: str) -> InputError:
        return InputError(what, where=self.path, advice=advice)

    def count_replicas(self, options: Options) -> int:
        """Count the replicas of the layout among the PEs of options."""
        facts = complete(self.facts, int(options["pe"]))
        return int(options["pe"]) // count_inside(facts)

    def list_notes(self, options: Options) -> list[str]:
        """List what was read, and not read, of the script. options: those of `find_options`."""
        stated, sources, framework = self.stated, self.sources, self.framework
        model, named = options["model"], dict(options)
        if isinstance(model, dict):
            named["model"] = model["name"]
        words = [f"--{n.replace('_', '-')} {_quote(named[n])}" for n in SHOWN if n in named]
        usual = {name for name, value in stated.defaults.items() if value not in (False, 0, 1)}
        of_network = ("norm", "positions") if isinstance(model, dict) else ()
        if self.facts.get("bf16") or self.facts.get("fp16"):  # which have stated the precision
            usual -= {"mixed"}
        recipe = self.facts.get("recipe")
        parts = {
            f"defaults of {framework.title}": [
                *(framework.describe_default(n) for n in (*WORTH, *of_network) if n in usual),
                *(["fp32"] if self._has_no_precision else []),
            ],
            "default of what starts processes": ["1 node"] if self._takes_one_node else [],
            "not read, but for what is stated over it": [f"the recipe {recipe}"] if recipe else [],
            "from the script's defaults of variables": [
                f"{'$' * name.isdecimal()}{name}={value}"
                for name, value in sources.variables.items()
                if not is_harmless(name) or name.isdecimal()
            ],
            "not stated here": [f"{name} ({variable})" for name, variable in stated.open.items()],
            "not understood, not counted, or assumed": [
                *(one.shown for one in stated.unknown if one.value not in (None, False, "none")),
                *(note for name, note in framework.notes.items() if self.facts.get(name)),
            ],
            "named, but not there": sources.missing,
            "not known, and taken as no arguments": sources.others,
            "launches before the last one, not read": sources.earlier,
            "conditions taken as false": sources.doubts,
        }
        notes = [f"{what}: {', '.join(dict.fromkeys(x))}" for what, x in parts.items() if x]
        first = f"{self.path} ({framework.title}) states {' '.join(words)}"
        return [note[:MOST_NOTE] for note in (first, *notes)]

    def _refuse_recipe(self, options: Options) -> None:
        """Raise InputError for what a recipe decides that is not read, and no option states."""
        wanted = {"sequence": ("length",), "global_batch": ("global_batch",), "strategy": RECIPES}
        for option, names in wanted.items():
            missing = [n for n in names if n in self.stated.defaults or self.facts.get(n) is None]
            if self.facts.get("recipe") and missing and option not in options:
                what = f"{', '.join(missing)} of the recipe {self.facts['recipe']} is not known"
                flag = option.replace("_", "-")
                advice = f"override it in the script, or give --{flag}"
                raise self._stop(what, advice)

    def _refuse_missing(self, options: Options) -> None:
        """Raise InputError for a configuration that is not there, unless the layout is given."""
        for statement in self.sources.statements:
            is_missing = str(statement.value) in self.sources.missing
            if is_missing and "strategy" not in options and CONFIGURES.search(statement.key):
                what = f"{statement.value}, which states the layout, is not there"
                advice = "put it beside the script, or give --strategy"
                raise self._stop(what, advice)

    def _wait_for(self, fact: str, option: str, options: Options, name: str = "") -> None:
        """Raise InputError for a fact that the environment decides and no option states."""
        if fact in self.stated.open and (name or fact) not in options:
            what = f"{fact} is {self.stated.open[fact]}, which the script leaves open"
            raise self._stop(what, f"give {option}")

    def _count_pes(self) -> int:
        for name in ("pes", "nodes", "per_node"):
            self._wait_for(name, "--pe", {})
        facts = self.facts
        data = self.stated.facts.get("data")
        if facts.get("pes") or data:
            return int(facts.get("pes") or int(data or 1) * count_inside(facts))
        nodes = facts.get("nodes") or (1 if self._takes_one_node else None)
        if not nodes or not facts.get("per_node"):
            missing = "nodes" if facts.get("per_node") else "PEs"
            raise self._stop(f"no number of {missing}", "give --pe")
        return int(nodes) * int(facts["per_node"])

    @property
    def _has_no_precision(self) -> bool:
        """True if nothing states a precision, so that it is the framework's: fp32."""
        stated = {*self.stated.facts} - {*self.stated.defaults}
        return self.facts.get("precision") == "fp32" and not stated & PRECISIONS

    @property
    def _takes_one_node(self) -> bool:
        """True if a program starts the processes on one node unless it is told of others."""
        stated = {statement.key for statement in self.sources.statements}
        known = self.facts.get("nodes") or {"hostfile", "include"} & stated
        return not known and bool(STARTERS & {*self.sources.programs})

    def _write_layout(self, facts: Facts, pes: int | None) -> str:
        """Write the layout. InputError: a degree that is not stated, or is not modelled."""
        for name in ("chunk_blocks", "granularity", "checkpointed", *DEGREES):
            self._wait_for(name, "--strategy", {})
        for name in DEGREES:
            if not (isinstance(facts.get(name) or 1, int) and (facts.get(name) or 1) > 0):
                what = f"{name}: expected a whole number from 1, got {shorten(facts[name])}"
                raise InputError(what, where=self.path)
        if facts.get("recompute") is None:
            what = f"what is recomputed by {facts.get('option') or facts.get('policy')}"
            raise self._stop(f"{what} is not known", "give --strategy")
        if facts.get("micro") is None:
            advice = "give --strategy, such as 'dp8 mb1'"
            raise self._stop("no number of sequences in a micro-batch", advice)
        row = {name: int(facts.get(name) or 1) for name in DEGREES}
        row["zero"] = int(facts.get("zero") or 0)
        inside = count_inside(facts)
        if pes and pes % inside:
            what = f"{pes} PEs are not divisible by {inside} of a replica"
            raise self._stop(what, "give --pe or --strategy")
        copies, node = int(facts.get("copies") or 1), facts.get("shard_of_node")
        if row["zero"] and (copies > 1 or node):
            row["shard"] = NODE if node else (pes or 0) // inside * row["context"] // copies
        row["sequence"] = int(bool(facts.get("sequence")) and row["tensor"] > 1)
        if facts.get("experts") and facts.get("expert_tensor") not in (None, row["tensor"]):
            row["expert_tensor"] = int(facts["expert_tensor"])
        stages, group = row["pipeline"], facts.get("group")
        if group not in (None, stages) and row["chunks"] > 1:
            row["group"] = int(group)
        for module in str(facts.get("recompute") or "none").split("+"):
            if module != "none" and module not in RECOMPUTE:
                raise InputError.unknown("module", module, RECOMPUTE, where="recompute")
            row["recompute"] = row.get("recompute", 0) | RECOMPUTE.get(module, 0)
        if pes:
            row["data"] = pes // inside
        usual = {name: column.usual for name, column in LAYOUT_COLUMNS.items() if name != "data"}
        return write_layout(usual | row, str(facts.get("schedule") or "1f1b"))

    def _find_model(self, length: int) -> str | dict[str, object]:
        """Find the network: a name that the catalogue has, a folder, or sizes."""
        for fact in ("model_name", "blocks", "features", "heads", "vocabulary"):
            self._wait_for(fact, "--model", {})
        names = [self.facts[key] for key in ("model_name", "recipe") if self.facts.get(key)]
        for known in filter(None, (find_name(str(name)) for name in names)):
            return find_named(known, length)
        name = names[0] if names else None
        folder = Path(self.path).parent / str(name or "\0")
        if name and "\0" not in str(folder) and (folder / "config.json").is_file():
            return str(folder / "config.json")
        if self.facts.get("features") and "features" not in self.stated.defaults:
            if not self.facts.get("vocabulary") and (kind := self.facts.get("kind")) != "vit":
                of, kind = self.facts.get("vocabulary_of"), str(kind or "decoder")
                found, self.facts["usual_words"] = find_vocabulary(of, kind)
                self.facts["vocabulary"] = found
            return make_network(self.facts, length, Path(self.path).stem)
        programs = (str(one.value)[:-3] for one in self.sources.statements if one.key == "program")
        if program := next(filter(None, map(find_name, programs)), None):  # pretrain_llama3_8b.py
            return find_named(program, length)
        what = f"the network {shorten(name)}" if name else "the network"
        raise self._stop(f"{what} is not known by name or sizes", "give --model NAME or a file")

    def _add_adapter(self, model: Any) -> Any:
        """Add adapters of a known rank to a network, and its weights of four bits."""
        facts, rank = self.facts, self.facts.get("lora")
        if str(facts.get("adapter")).lower() not in ("lora", "qlora", "true") or not rank:
            return model
        is_narrow = facts["adapter"] == "qlora" or facts.get("in_4bit") or facts.get("bits") == 4
        facts["bare_adapter"] = None
        narrow = {"weights": "nf4"} if is_narrow else {}
        if isinstance(model, dict):
            return model | {"tuning": {"lora": rank, **narrow}}
        return f"{model}:" + ",".join(f"{k}={v}" for k, v in {"lora": rank, **narrow}.items())

    def _add_software(self, system: str) -> str:
        """Add software and switches to the name of a machine that states none."""
        if "software=" in system:
            return system
        facts = self.facts
        software: SoftwareName = facts.get("software") or self.framework.software
        traits = SOFTWARE[software].layouts
        # Switches without effect stay as they are.
        layout = {
            "overlap_gradients": True,
            "overlap_weights": facts.get("zero"),
            "overlap_tensor": facts.get("sequence") and facts.get("tensor", 1) != 1,
            "overlap_experts": facts.get("expert", 1) != 1,
            "sends_once": facts.get("expert", 1) != 1,
            "grouped_experts": facts.get("experts"),
        }
        changed = {
            name: bool(facts[name])
            for name in Switches.model_fields
            if facts.get(name) is not None
            and layout.get(name)
            and getattr(traits, name) != bool(facts[name])
        }
        settings = write_settings({"software": software, **changed})
        return f"{system}{',' if ':' in system else ':'}{settings}"


def _find_sizes(model: Any) -> Facts:
    """Find blocks and experts of a network that a script names; none of one that has no flags."""
    with suppress(InputError):
        network = describe_network(find("model", model, Path()))
        return {name: network.get(name) for name in ("blocks", "experts")}
    return {}


def read_launch(text: str) -> LaunchScript:
    """Read a launch script or configuration: FILE, or FILE.py:FUNCTION.

    InputError: it is none that is known, or a value is wrong, with the place.
    """
    name, colon, chosen = text.rpartition(":")
    path = Path(name if colon and name.endswith(".py") else text)
    if text in FRAMEWORKS:
        what = f"launch lines for {text} are written by 'explain'"
        raise InputError(what, where="launch", advice="name a script to read")
    if not path.exists() and not path.suffix:
        raise InputError.unknown("script or framework", text, FRAMEWORKS, where="launch")
    sources = Sources(path.parent)
    sources.read(path, chosen if path.suffix == ".py" and colon else "")
    sources.resolve()
    words = [*sources.programs, *(statement.key for statement in sources.statements)]
    with add_place(str(path)):
        framework = find_framework(words)
        stated = read_facts(framework, sources.statements)
        facts = fold(framework, stated.facts)
    return LaunchScript(str(path), framework, facts, stated, sources)


def find_framework(words: Iterable[str]) -> Framework:
    """Find the framework of a script by its programs and parameters. InputError: none is known."""
    text = " ".join(words)
    for name, signs in load_table("others").items():
        if re.search(signs, text):
            advice = "give --model, --pe, --strategy, --global-batch and --sequence in its place"
            raise InputError(f"scripts of {name} are not read", advice=advice)
    for name in RECOGNISED:
        if re.search(load_framework(name).signs, text):
            return load_framework(name)
    advice = f"known: {', '.join(FRAMEWORKS)}"
    raise InputError("no framework is recognised in it", advice=advice)


def _quote(value: object) -> str:
    text = str(value)
    return f"'{text}'" if " " in text and text[0] != "(" else text
