"""Networks of launch lines: sizes that flags state as a family of the catalogue, and back; names.

Families, and names that people write, are in `tables/networks.yaml`.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from paradl.grids.entries.names import list_names
from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture, Constants
from paradl.grids.models.files.template import fill_settings, load_family
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.yamlfile import join_keys
from paradl.sweep.launching.facts import Facts, load_table

MOST_EVERY = 16  # blocks between two with experts
# Blocks of Llama, and of most checkpoints since.
LLAMA: Facts = {"norm": "rms", "gated": True, "bias": False, "positions": "rotary"}
MINOR = re.compile(r"^llama3[13](?=\d+b)")  # Llama 3.1 and 3.3 have the sizes of Llama 3


def describe_network(model: Architecture) -> Facts:
    """Describe a network of a known family by facts. InputError: what it has is no parameter."""
    table = load_table("networks")
    settings: Mapping[str, Any] = (model.family.__pydantic_extra__ or {}) if model.family else {}
    name = "decoder" if "mixers" in settings else model.family.name if model.family else ""
    form, latent = table["forms"].get(name), settings.get("latent") or {}
    if form is None:
        _refuse(model, [])
    renamed = form.get("renamed", {})
    names = {fact: renamed.get(fact, fact) for fact in (*form["needed"], *form["others"])}
    known = {*names.values(), "latent"}
    # All others have to be as the family has them unless they are stated.
    stated = {key: value for key, value in settings.items() if key in known}
    usual = fill_settings(load_family(name).settings, stated, {}, join_keys)
    odd = [k for k, n in usual.items() if k not in known and settings.get(k, n) != n]
    facts: Facts = form["traits"] | {fact: settings.get(key) for fact, key in names.items()}
    if name == "decoder":
        ours = {theirs: word for word, theirs in form["spelled"].items()}
        biased, own = facts["output_bias"], facts["bias"]
        odd += [] if facts["norm"] in ours else ["norm"]
        odd += [] if facts["mlp_bias"] == biased <= own else ["mlp_bias"]
        facts |= {"norm": ours.get(facts["norm"]), "bias": biased, "qkv_bias": own and not biased}
        facts["positions"] = "learned" if facts["positions"] else "rotary"
    if odd:
        _refuse(model, odd)
    facts |= {fact: latent.get(setting) for fact, setting in table["latent"].items()}
    facts["latent"] = bool(latent)
    if facts.get("experts"):
        facts["pattern"] = [int(is_routed(block, facts)) for block in range(facts["blocks"])]
    constants = model.constants or Constants()
    return facts | constants.model_dump() | {"name": model.name}


def _refuse(model: Architecture, odd: Sequence[str]) -> NoReturn:
    others = f"with {', '.join(odd)} " if odd else ""
    raise InputError(
        f"no parameters are known of networks {others}like {model.name}",
        where="launch",
        advice="take one of the families gpt, llama, moe, t5, vit (docs/your-model.md)",
    )


def is_routed(block: int, facts: Facts) -> bool:
    """Return whether a block has experts, as the family `moe` places them."""
    behind = block - (facts.get("dense_blocks") or 0)
    return behind >= 0 and (behind + 1) % (facts.get("every") or 1) == 0


def find_pattern(pattern: Sequence[int]) -> Facts:
    """Find the first blocks without experts, and then every how many blocks have them.

    InputError: blocks with experts stand otherwise.
    """
    if any(pattern) and pattern[0]:  # every second block from the first: as many as from the second
        last = list(pattern)[::-1].index(1)
        pattern = [*pattern[len(pattern) - last :], *pattern[: len(pattern) - last]]
    for every in range(1, MOST_EVERY):
        dense = list(pattern).index(1) + 1 - every if 1 in pattern else -1
        facts = {"dense_blocks": dense, "every": every}
        if dense >= 0 and all(is_routed(n, facts) == bool(one) for n, one in enumerate(pattern)):
            return facts
    what = f"blocks with experts at {list(pattern)[:12]} are not modelled"
    raise InputError(what, where="moe_layer_freq", advice="give --model")


def make_network(facts: Facts, length: int, title: str) -> dict[str, object]:
    """Return the definition of a network by its sizes, with a name. length: of a sequence [tokens].

    InputError: a size is missing.
    """
    table, kind = load_table("networks"), facts.get("kind") or "decoder"
    form, settings = table["forms"][kind], dict[str, object]()
    longest = max(int(facts.get("longest") or 0), length)
    facts = facts | {"longest": longest}
    if kind == "decoder":
        biased, learned = facts.get("bias"), facts.get("positions") == "learned"
        facts |= dict.fromkeys(("output_bias", "mlp_bias"), biased)
        facts |= {"bias": biased or facts.get("qkv_bias"), "positions": longest if learned else 0}
        if facts.get("wider") and not facts.get("hidden"):
            facts["hidden"] = int(facts["wider"] * facts["features"])
        facts |= {} if facts.get("experts") else {"active": None}
    # Without experts in all blocks, the others have an MLP.
    needed = [*form["needed"], *(() if facts.get("experts") or kind == "bert" else ("hidden",))]
    for fact in dict.fromkeys((*needed, *form["others"])):
        value = facts.get(fact)
        if value is not None:
            spelled = form.get("spelled", {}).get(value, value)
            settings[form.get("renamed", {}).get(fact, fact)] = spelled
        elif fact in needed:
            advice = f"state it in the script ({fact}), or give --model NAME or a file"
            raise InputError(f"no {fact} of the network", where="network", advice=advice)
    if facts.get("latent"):
        latent = {setting: facts.get(fact) for fact, setting in table["latent"].items()}
        unused = ("kv_heads", "head_features", "normalise_heads")
        settings = {k: v for k, v in settings.items() if k not in unused} | {"latent": latent}
    constants = {key: facts[key] for key in Constants.model_fields if facts.get(key) is not None}
    is_text = kind != "vit"
    return {
        "name": title,
        "source": ["sizes of a launch script"],
        "rank": 1 if is_text else 2,
        "customary": "pile" if is_text else "imagenet",
        **({"longest": longest, "constants": constants} if is_text else {}),
        "family": {"name": kind, **settings},
    }


def find_name(text: str) -> str | None:
    """Return the catalogue's name of a network that frameworks write otherwise; None: none."""
    table = load_table("networks")
    known = {name.replace("_", ""): name for name in list_names("model")} | table["names"]
    known |= {name: name for name in table["sizes"]}
    whole = re.sub(r"\.(ya?ml|json|nemo)$|\(.*", "", text.lower().rpartition("/")[2])
    for part in (whole, *whole.split(".")):
        plain = re.sub(r"[^a-z0-9]", "", part)
        for _ in range(2):  # base and config, at an end that the other one left
            plain = re.sub(table["noise"], "", plain)
        if (name := MINOR.sub("llama3", plain)) in known:
            return str(known[name])
    return None


def find_named(name: str, length: int) -> str | dict[str, object]:
    """Return a network by `find_name`, as one that reads sequences of this length [tokens]."""
    table = load_table("networks")
    if row := table["sizes"].get(name):
        others: Facts = row[7] if len(row) > 7 else {}
        sizes = dict(zip(table["columns"], row[:7], strict=True))
        return make_network(LLAMA | sizes | others, length, name)
    model = find("model", name, Path())
    if not model.longest or length <= model.longest:
        return name
    return model.definition() | {"longest": length}


def find_vocabulary(name: str | None, kind: str) -> tuple[int, bool]:
    """Find the vocabulary of a network by `find_name`; else one to assume. True: it is assumed."""
    if name is None:
        return load_table("networks")["vocabularies"][kind], True
    family = find("model", find_named(name, 0), Path()).family
    return int(((family and family.__pydantic_extra__) or {}).get("vocabulary") or 0), False
