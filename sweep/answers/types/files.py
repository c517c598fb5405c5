"""Columns of users' tables, for `paradl schema`."""

from typing import Annotated, NotRequired, TypedDict

from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import Fact, Seconds


class RunColumns(TypedDict):
    """Row of a CSV file of measured runs (docs/your-runs.md); other columns are ignored."""

    model: words.Model
    dataset: words.Dataset
    strategy: words.Strategy
    p: Annotated[int, "PEs"]
    samples_per_replica: Annotated[int, "of a PE (data) or group (hybrids), else of all PEs"]
    total_s: Annotated[Seconds, "time of an iteration"]
    comp_s: NotRequired[Annotated[Seconds, "its time computing"]]
    comm_s: NotRequired[Annotated[Seconds, "its time communicating"]]
    memory: NotRequired[Annotated[str | float, Fact("memory of a PE, such as 5.3 GB", "B")]]
    system: NotRequired[Annotated[str, "the machine; by default that of --system"]]
    source: NotRequired[Annotated[str, "where the run was measured"]]
    note: NotRequired[Annotated[str, "anything else"]]
