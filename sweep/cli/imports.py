"""Commands that import machines and networks. As in `sweep.cli.main`, heavy imports are inside."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from paradl.grids.entries.names import check_name
from paradl.grids.reading.errors import add_place, format_count
from paradl.grids.reading.textfile import expect_output, write_text
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import MISSED, PatientCommand, end, make_group
from paradl.sweep.cli.values import take_count, take_number
from paradl.sweep.engine.progress import report_state
from paradl.sweep.text.visible import tell

importing = make_group("Machines of your own from logs, networks from code and files.")
probing = make_group("Measure this device, or a network on it.")

Label = Annotated[str | None, Option(help="Label; default: the file's name.", show_default=False)]
OneModel = Annotated[str, Argument(help="A catalogue name, or a file of your own.")]
Precision = Annotated[
    Literal["fp32", "tf32", "amp", "bf16"], Option(help="Precision of the timed operations.")
]


@probing.command("machine")
def probe_machine(
    precision: Precision = "fp32",
    seconds: Annotated[float, take_number("seconds", "Leave out longer products.", least=1)] = 120,
    form: options.Form = "table",
    quiet: options.Quiet = False,
) -> None:
    """Measure this device through JAX: products, convolutions, memory, launches."""
    from paradl.sweep.importing.machines.device_times import describe_device, probe_device
    from paradl.sweep.text.tables import show

    with report_state("starting", silent=quiet) as report:
        rows = probe_device(precision, report, budget=seconds)
    show(rows, form)
    tell(f"paradl: {describe_device()}, {precision}")


@probing.command("model")
def probe_model(
    model: OneModel,
    dataset: Annotated[str, Option(help="Data set whose samples are timed.")],
    device: Annotated[str, Option(help="Name of the device, as 'device' of a system's pe has it.")],
    output: options.YamlOutput,
    batch: Annotated[int, take_count("Samples per pass.", least=1)] = 32,
    precision: Precision = "fp32",
    form: options.Form = "table",
    quiet: options.Quiet = False,
) -> None:
    """Time a network's layers, forward and backward, and write them as a profile."""
    # Timing takes minutes; wrong names and paths are reported before.
    check_name("model", model)
    options.check_names({"dataset": dataset}, several=False)
    from paradl.sweep.importing.machines.device_times import profile_model, write_model
    from paradl.sweep.text.tables import show_rows

    expect_output(output, [Path(model)])
    with report_state("starting", silent=quiet) as report:
        profiled, rows = profile_model(model, dataset, batch, precision, device, report)
    write_model(profiled, output)
    show_rows(rows, form)
    seconds = profiled.profiles[-1].seconds
    tell(f"paradl: {seconds:.4g} s per sample, forward and backward; wrote {output}")


@importing.command("model", cls=PatientCommand)
def import_model(
    source: Annotated[
        str, Argument(help="An .onnx file, or PACKAGE.MODULE:FUNCTION that returns a torch module.")
    ],
    output: options.YamlOutput,
    shape: Annotated[
        str | None, Option(help="Shape of a sample: 3,224,224; ONNX may have it.", metavar="SIZES")
    ] = None,
    name: Label = None,
    allow_unknown: Annotated[
        bool, Option("--allow-unknown", help="Count unknown operators as memory traffic.")
    ] = False,
    form: options.Form = "table",
) -> None:
    """Write a network as a model's file, its parameters checked."""
    from paradl.sweep.importing.networks.source import import_network
    from paradl.sweep.text.catalogue import show_network

    # Tracing a network takes seconds; a wrong path is reported before.
    expect_output(output, [Path(source)])
    network = import_network(source, shape, name or output.stem, allow_unknown)
    write_text(network.text, output)
    show_network(network, form)
    tell(f"paradl: wrote {output}")


@importing.command("check")
def check_model(
    model: OneModel,
    weights: Annotated[
        list[Path], Argument(metavar="FILE.safetensors...", help="All parts of a checkpoint.")
    ],
    form: options.Form = "table",
) -> None:
    """Compare a network's parameters with those of a checkpoint."""
    check_name("model", model)
    from paradl.sweep.importing.networks.safetensors_file import count_parameters
    from paradl.sweep.questions.catalogue import list_models
    from paradl.sweep.text.tables import show_one

    stored = count_parameters(weights)
    (row,) = list_models(model)
    counted = row["parameters"]
    show_one({"model": row["model"], "parameters": counted, "checkpoint": stored}, form)
    if counted != stored:
        end(
            f"{format_count(stored, 'parameter')} in the checkpoint, {counted:,} in the model",
            MISSED,
        )


@importing.command("machine", cls=PatientCommand)
def import_machine_logs(
    files: Annotated[
        list[Path],
        Argument(
            metavar="LOG...", help="Of nccl-tests, OSU, perftest; NCCL's XML; nvidia-smi's output."
        ),
    ],
    output: options.YamlOutput,
    name: Label = None,
    like: Annotated[
        str | None, Option(help="Machine for values that no log states, which are marked as such.")
    ] = None,
    pe: Annotated[int | None, take_count("PEs of runs whose logs do not say.", least=2)] = None,
    pes_per_node: Annotated[int | None, take_count("PEs per node.", least=1)] = None,
    links_per_node: Annotated[int | None, take_count("Network adapters per node.", least=1)] = None,
    size: Annotated[int | None, take_count("PEs of the whole machine.", least=1)] = None,
    form: options.Form = "table",
) -> None:
    """Fit a machine to logs of benchmarks, and write it as a file to edit."""
    if like is not None:
        with add_place("--like"):
            check_name("system", like)
    from paradl.grids.library import find
    from paradl.sweep.importing.machines.machine import Given, import_machine, write_machine
    from paradl.sweep.importing.machines.read import read_evidence
    from paradl.sweep.text.catalogue import show_machine

    # A log must not be overwritten by the machine that it measured.
    expect_output(output, files)
    machine = find("system", like, Path()) if like else None
    given = Given(name or output.stem, machine, pes_per_node, links_per_node, size)
    imported = import_machine(read_evidence(files, pe), given)
    write_machine(imported, output)
    show_machine(imported, form)
    tell(f"paradl: wrote {output}")
