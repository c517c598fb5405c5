"""Keys of answers: what each is, in which unit, and of which type of JSON.

Parameters, stored variables, terms and units have tables of their own, which are asked first;
`WORDS` has what stands in none of them.
"""

from dataclasses import dataclass
from typing import Any

from grids.entries.parameters import PARAMETERS
from kernels.terms import TERMS
from sweep.answers.units import PREFIXED, UNITS
from sweep.cube.variables import VARIABLES, name_limits

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
VALUE: Schema = {"type": ["number", "string"]}
RECORD: Schema = {"type": "object"}
TEXTS: Schema = {"type": "array", "items": TEXT}
NUMBERS: Schema = {"type": "array", "items": NUMBER}
COUNTS: Schema = {"type": "array", "items": COUNT}
VALUES: Schema = {"type": "array", "items": VALUE}
RECORDS: Schema = {"type": "array", "items": RECORD}
# Numbers by name; of what cannot exist null.
AMOUNTS: Schema = {"type": "object", "additionalProperties": {"type": ["number", "null"]}}
BY_PRECISION: Schema = {"type": ["number", "object"], "additionalProperties": NUMBER}
REASONS: Schema = {"type": "array", "items": {"enum": name_limits(~0)}}
TIMES: Schema = {
    "type": "object",
    "properties": {name: {"type": ["number", "null"]} for name in TERMS},
    "additionalProperties": False,
}
# What depends on another key, or on an option.
OWN, AXIS = "SI, of the parameter", "SI, of the axis that --over names"


@dataclass(frozen=True)
class Key:
    """A key of an answer. unit: of numbers, where no table of units has the name."""

    schema: Schema
    meaning: str
    unit: str = "1"


WORDS = {
    "model": Key(TEXT, "the network, by its name in the catalogue or its file's"),
    "dataset": Key(TEXT, "the data set"),
    "system": Key(TEXT, "the machine"),
    "strategy": Key(TEXT, "how the training is divided, such as data+filter:group=4"),
    "rank": Key(COUNT, "1 is the best of its place; null: feasible nowhere"),
    "epoch_time": Key(NUMBER, "time of an epoch"),
    "global_batch": Key(COUNT, "samples of an iteration"),
    "pe_hours": Key(NUMBER, "PE-hours of an epoch, or of the training where epochs are known", "h"),
    "cost": Key(NUMBER, "PE-hours times the price of one", "currency of --price"),
    "notes": Key(TEXTS, "what files state and the oracle does not use; what is odd about them"),
    "feasible": Key(FLAG, "whether nothing forbids it"),
    "limit": Key(REASONS, VARIABLES["limit"].long_name),
    "rejection": Key(RECORD, "the nearest cell, its limit, and the changes that make it feasible"),
    "faster_than_next": Key(NUMBER, "probability that the first takes less time than the second"),
    "marks": Key(REASONS, "what marks the fastest PE count, and forbids nothing"),
    "largest_pe": Key(COUNT, "the largest PE count that nothing forbids"),
    "forbidden_by": Key(TEXT, "what forbids the next PE count"),
    "fastest_pe": Key(COUNT, "the PE count with the least time of an epoch"),
    "fastest_time": Key(NUMBER, "the least time of an epoch"),
    "soonest_pe": Key(COUNT, "the PE count with the least time to the target"),
    "soonest_time": Key(NUMBER, "the least time to the target"),
    "soonest_epochs": Key(NUMBER, "epochs to the target with soonest_pe"),
    "efficient_pe": Key(COUNT, "the largest PE count that has the parallel efficiency"),
    "soonest_efficient_pe": Key(COUNT, "the same, by the time to the target"),
    "over": Key(TEXT, "the strategy that is overtaken"),
    "over_system": Key(TEXT, "the machine that is overtaken"),
    "along": Key(TEXT, "the parameter that varies"),
    "at": Key(NUMBERS, "values from which on strategy takes less than over, ascending", OWN),
    "first": Key(NUMBER, "the least value of at", OWN),
    "reason": Key(TEXT, "why there is no value"),
    "crosses_probability": Key(NUMBER, "part of the draws in which there is a crossover"),
    "binds": Key({"enum": [*TERMS]}, "the term that takes most of the time"),
    "share": Key(NUMBER, "part of the time that binds takes"),
    "kind": Key(
        {"enum": ["work", "limitation", "bottleneck"]},
        "limitation: of the strategy; bottleneck: of the framework or the system",
    ),
    "sentence": Key(TEXT, "what binds, and why"),
    "computing": Key(NUMBER, "part of the time in which PEs compute"),
    "shares": Key(AMOUNTS, "part of the time by term"),
    "memory_parts": Key(AMOUNTS, "memory of the fullest PE by part"),
    "binds_probability": Key(NUMBER, "part of the draws in which this term is the largest"),
    "parameter": Key(TEXT, "a parameter's name, as paradl parameters lists them"),
    "value": Key(NUMBER, "the parameter's value", OWN),
    "elasticity": Key(NUMBER, "d log T / d log x of the time T of an epoch"),
    "upgrade": Key({"enum": ["halved", "doubled"]}, "what is tried; null: the bounds forbid it"),
    "change": Key(NUMBER, "what the upgrade changes of the time, (T' - T) / T"),
    "holds": Key(NUMBER, "probability that the deadline holds"),
    "own": Key(NUMBER, "the value that the machine, or the cell, has", OWN),
    "needed": Key(NUMBER, "the value that the goal takes; null: see reason", OWN),
    "met_probability": Key(NUMBER, "part of the draws in which some value will do"),
    "worst_loss": Key(NUMBER, "by what part it takes longer than the best, at worst"),
    "worst_at": Key(VALUE, "where: a system, a value, a draw; null: it loses nowhere", AXIS),
    "worst_precision": Key(TEXT, "the precision of the system in worst_at"),
    "worst_software": Key(TEXT, "how gradients are sent on the system in worst_at"),
    "mean_loss": Key(NUMBER, "the loss on average"),
    "infeasible_at": Key(VALUES, "where the strategy is not feasible", AXIS),
    "samples": Key(COUNT, "samples of an epoch"),
    "iterations": Key(NUMBER, "iterations of an epoch"),
    "iteration_time": Key(NUMBER, "time of an iteration"),
    "iteration_comp_time": Key(NUMBER, "time computing, per iteration"),
    "iteration_comm_time": Key(NUMBER, "time communicating, per iteration"),
    "largest_batch": Key(COUNT, "samples per replica that fit in memory; 0: none; null: no bound"),
    "oracle": Key({"enum": ["machine", "paper"]}, "whose formulas were evaluated"),
    "precision": Key(TEXT, "the precision of numbers in training"),
    "software": Key(TEXT, "how gradients are sent"),
    "times": Key({"enum": ["measured", "roofline"]}, "where times of layers come from"),
    "profile": Key(TEXT, "the measured time of the model that was taken, or why none"),
    "convergence": Key(TEXT, "the measured epochs that were taken, or why none"),
    "terms": Key(TIMES, "time of an epoch by term", "s/epoch"),
    "parameters": Key(AMOUNTS, "what the formulas were evaluated with", OWN),
    "calibration": Key(TEXT, "the calibration, by name; null: priors alone, or no intervals"),
    "intervals": Key(RECORD, "p10, p50 and p90 of times of an iteration, and of a training", "s"),
    "extrapolation": Key(TEXTS, "in what it lies beyond what was measured"),
    "smallest_group": Key(COUNT, "PEs of the smallest group that fits; 0: none; null: no groups"),
    "formulas": Key(RECORDS, "a row a term: formula, numbers, seconds, part of the time"),
    "hidden": Key(RECORDS, "the same of what passes while PEs compute: no part of the sum"),
    "memory_formulas": Key(RECORDS, "a row a part of the memory: formula and numbers"),
    "symbols": Key(RECORDS, "what each symbol means, and its value"),
    "launch": Key(RECORD, "the command, ranks and groups of such a training"),
    "layers": Key(RECORDS, "a row a layer: sizes, and what one PE has of it"),
    "same": Key(FLAG, "whether both have the same cells with the same answers"),
    "cells": Key(COUNT, "cells, of two cubes those that both have"),
    "compared": Key(COUNT, "cells of finished blocks of both"),
    "inputs": Key(RECORDS, "rows of key, first, second: inputs that differ"),
    "versions": Key(RECORDS, "rows of key, first, second: versions that differ"),
    "axes": Key(RECORDS, "rows of axis, shared, only_first, only_second: axes that differ"),
    "variables": Key(RECORD, "only_first, only_second: variables that one cube has"),
    "answers": Key(RECORDS, "a row a variable: changed cells, ratios of second to first, where"),
    "feasibility": Key(RECORD, "how many cells changed, became_feasible, became_infeasible"),
    "winners": Key(RECORDS, "PE counts over which another strategy is the fastest"),
    "store": Key(TEXT, "the place of the cube"),
    "name": Key(TEXT, "what the spec calls itself"),
    "complete": Key(FLAG, "whether all is done and there"),
    "blocks": Key(COUNT, "blocks of the cube"),
    "blocks_done": Key(COUNT, "blocks that are done"),
    "summaries_missing": Key(COUNT, "summaries that finished blocks lack"),
    "bytes": Key(COUNT, "size of the cube's variables, uncompressed"),
    "damaged": Key(RECORDS, "damaged files: variable, file, what, cells, block"),
    "left": Key(TEXT, "why marks could not be cleared; null: they were"),
}


def describe_key(key: str, own: Key | None = None) -> Schema:
    """The schema of a key's values, with its unit and its meaning. KeyError: no table has it.

    own: what it is in this answer, where that is not what it is in others.
    """
    stem, _, percent = key.rpartition("_p")
    if own is None and percent in ("10", "50", "90"):
        base = describe_key(stem)
        return base | {"description": f"{percent}th percentile: {base['description']}"}
    found = own or WORDS.get(key) or _look_up(key)
    unit = PREFIXED.get(key, UNITS.get(key, found.unit))
    told = {"unit": unit} if holds_numbers(found.schema) else {}
    return found.schema | told | {"description": found.meaning}


def holds_numbers(schema: Schema) -> bool:
    """Whether a value, an item of a list or a named part may be a number.

    Parts that are told one by one have units of their own, as keys of rows have.
    """
    parts = (
        schema,
        schema.get("items", {}),
        schema.get("additionalProperties") or {},
        *(part for part in schema.get("properties", {}).values() if "description" not in part),
    )
    kinds = [each.get("type", ()) for each in parts]
    return any({"number", "integer"} & set([k] if isinstance(k, str) else k) for k in kinds)


def _look_up(key: str) -> Key:
    """A key that a table of the oracle's has."""
    if key in PARAMETERS:
        parameter = PARAMETERS[key]
        return Key(COUNT if parameter.whole else NUMBER, parameter.meaning, parameter.unit)
    variable = VARIABLES[key]
    whole = key in ("replicas", "group_size", "segment_count")
    return Key(COUNT if whole else NUMBER, variable.long_name, variable.units)


def allow_null(schema: Schema) -> Schema:
    """The schema that null fits, too."""
    if "enum" in schema:
        return schema | {"enum": [*schema["enum"], None]}
    kinds = schema["type"]
    return schema | {"type": [*(kinds if isinstance(kinds, list) else [kinds]), "null"]}
