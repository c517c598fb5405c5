"""Count the networks of tests/data/huggingface.json by Transformers' own modules.

    pip install torch==2.13.0 transformers==5.24.0 && python tests/helpers/count_huggingface.py

prints the cases whose parameters differ; none did on 2026-12-01. Nothing is allocated: modules are
on the meta device. counted_as: types without a class there, as one with the same blocks. The
project itself needs neither package.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, logging
from transformers.models.auto import modeling_auto

DATA = Path(__file__).parents[1] / "data" / "huggingface.json"
# Types whose files have another's class, and classes that hold tables of words beside a network.
SAME_CLASS = {"kimi_k2": "deepseek_v3"}
ENCODERS = """bert roberta xlm-roberta camembert ernie data2vec-text distilbert electra mpnet gte
    megatron-bert xlm-roberta-xl roberta-prelayernorm nomic_bert jina_embeddings_v3 modernbert
    eurobert albert deberta deberta-v2"""
PAIRS = "t5 mt5 umt5 bart mbart mvp plbart blenderbot blenderbot-small pegasus m2m_100 marian"
HEADS = {
    **dict.fromkeys(ENCODERS.split(), "AutoModelForMaskedLM"),
    **dict.fromkeys(PAIRS.split(), "AutoModelForSeq2SeqLM"),
    **{"vit": "AutoModelForImageClassification", "whisper": "AutoModelForSpeechSeq2Seq"},
}
# Biases of routers, which are buffers and stand in checkpoints; parts of other senses.
CORRECTIONS = re.compile(r"e_score_correction_bias$|expert_bias$")
OTHER_SENSES = re.compile(r"vision|visual|audio|multi_modal_projector|embed_vision")


def count(config: dict[str, Any]) -> int:
    """Parameters of a network, or of its part for text."""
    kind = config["model_type"]
    form = CONFIG_MAPPING[SAME_CLASS.get(kind, kind)].from_dict(dict(config))
    form.num_labels = 1000
    text = getattr(form, "text_config", None)
    for part in (form, text):  # numbers of words that small tables do not have
        if part is not None:
            part.pad_token_id = 0
    with torch.device("meta"):
        if text is not None and type(text) in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING:
            network = AutoModelForCausalLM.from_config(text)
        else:
            usual = "AutoModelForCausalLM" if text is None else "AutoModelForImageTextToText"
            network = getattr(modeling_auto, HEADS.get(kind, usual)).from_config(form)
    network.tie_weights()
    tensors = {id(t): t.numel() for name, t in network.named_parameters() if _is_text(name)}
    extra = [b.numel() for name, b in network.named_buffers() if CORRECTIONS.search(name)]
    return int(sum(tensors.values()) + sum(extra))


def _is_text(name: str) -> bool:
    return OTHER_SENSES.search(name) is None


if __name__ == "__main__":
    logging.set_verbosity_error()
    cases = json.loads(DATA.read_text())
    others = [
        case["case"]
        for case in cases
        if count(case.get("counted_as", case["config"])) != case["parameters"]
    ]
    print(len(cases) - len(others), "of", len(cases), "alike; others:", *others)
    sys.exit(bool(others))
