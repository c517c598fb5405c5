"""The sizes of a transformer, from the settings of its family."""

from collections.abc import Callable, Mapping
from typing import Any

from grids.models.architecture import Architecture
from grids.models.netfile import NetModel
from grids.reading.errors import InputError
from kernels.layouts.transformer import Latent, Transformer

Settings = Mapping[str, Any]


def read_transformer(model: Architecture | NetModel) -> Transformer:
    """The sizes of a network of the families gpt, llama or moe; InputError: of another one."""
    family = model.family if isinstance(model, Architecture) else None
    if family is None or family.name not in READERS:
        raise InputError(
            f"model {model.name} is of none of the families {', '.join(READERS)}",
            advice="take a decoder of these, or a config.json of Hugging Face",
        )
    return READERS[family.name](family.model_extra or {})


def _read_gpt(settings: Settings) -> Transformer:
    heads, features = settings["heads"], settings["features"]
    return Transformer(
        hidden=features,
        heads=heads,
        kv_heads=heads,
        head_size=features // heads,
        ffn=settings["hidden"],
        vocabulary=settings["vocabulary"],
        expert_blocks=(False,) * settings["blocks"],
        matrices=2,
        norm=2,
        tied=settings["tied"],
        column_biases=True,
        row_biases=True,
        mlp_biases=True,
        positions=settings["positions"],
        longest=settings["positions"],
    )


def _read_sizes(settings: Settings) -> dict[str, Any]:
    """The sizes that Llama and mixtures of experts have alike."""
    return {
        "hidden": settings["features"],
        "heads": settings["heads"],
        "kv_heads": settings["kv_heads"],
        "head_size": settings["head_features"],
        "ffn": settings["hidden"],
        "vocabulary": settings["vocabulary"],
        "tied": settings["tied"],
        "head_norms": settings["normalise_heads"],
    }


def _read_llama(settings: Settings) -> Transformer:
    return Transformer(
        **_read_sizes(settings),
        expert_blocks=(False,) * settings["blocks"],
        column_biases=settings["bias"],
        row_biases=settings["output_bias"],
    )


def _read_moe(settings: Settings) -> Transformer:
    dense, every = settings["dense_blocks"], settings["every"]
    latent = settings["latent"] and dict(settings["latent"])
    if latent:
        latent["query_rank"] = latent.get("query_rank") or 0
    return Transformer(
        **_read_sizes(settings),
        expert_blocks=tuple(
            block >= dense and (block - dense + 1) % every == 0
            for block in range(settings["blocks"])
        ),
        experts=settings["experts"],
        top_k=settings["active"],
        expert_ffn=settings["expert_hidden"],
        shared_ffn=settings["shared_hidden"],
        router_biases=settings["corrects"],
        latent=Latent(**latent) if latent else None,
    )


READERS: Mapping[str, Callable[[Settings], Transformer]] = {
    "gpt": _read_gpt,
    "llama": _read_llama,
    "moe": _read_moe,
}
