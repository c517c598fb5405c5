"""JSON schemas of what each verb prints with `--format json`: for agents and scripts."""

from sweep.answers.facts import Schema
from sweep.answers.schemas import DRAFT
from sweep.answers.schemas import build_schemas as build_typed
from sweep.show.answer_rows import Answer, describe_row
from sweep.show.hybrid_keys import HYBRID
from sweep.show.sample_keys import LEAKAGE, SAID, SCORES

ANSWERS: dict[str, Answer] = {
    "hybrid": HYBRID,
    "leakage": LEAKAGE,
    "surrogate evaluate": SCORES,
    "surrogate predict": SAID,
}


def build_schemas() -> dict[str, Schema]:
    """The schema of each verb's JSON, by the verb, JSON schema draft 2020-12.

    `unit` beside `type` is an annotation: the unit of the numbers, SI.
    """
    return build_typed() | {verb: _build_schema(verb, answer) for verb, answer in ANSWERS.items()}


def _build_schema(verb: str, answer: Answer) -> Schema:
    head = {"$schema": DRAFT, "title": f"paradl {verb} --format json"}
    row = describe_row(answer)
    return head | (row if answer.record else {"type": "array", "items": row})
