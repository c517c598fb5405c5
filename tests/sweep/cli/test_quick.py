"""Questions that nothing has to be computed for do without what is slow to import."""

import json
import os
import subprocess
import sys
from pathlib import Path

PAL = Path(__file__).parents[3] / "examples" / "pal2019.csv"

# Runs commands in one process, and tells after each on stderr what has been imported so far. Each
# argument: the exit code, and the command; after "apart", by a child of the process, whose imports
# the other commands do not have.
TELLING = """
import json, os, sys
sys.argv[0] = "paradl"
from paradl.sweep.cli.main import main
for argument in sys.argv[1:]:
    code, command = argument.removeprefix("apart ").split(" ", 1)
    if argument.startswith("apart ") and os.fork():
        os.wait()
        continue
    sys.argv = ["paradl", *command.split()]
    try:
        main()
    except SystemExit as ended:
        assert int(ended.code or 0) == int(code), command
    names = {name.partition(".")[0] for name in sys.modules} | {"dask.array"} & {*sys.modules}
    print("imported:", json.dumps(sorted(names)), file=sys.stderr)
    if argument.startswith("apart "):
        break
"""
NOTHING = {"jax", "xarray", "distributed", "zarr", "pandas", "scipy", "numpy", "pydantic"}
NO_NUMBERS = NOTHING - {"pydantic"}
NO_ARRAYS = NO_NUMBERS - {"numpy"}
NO_STORE = NO_ARRAYS - {"scipy"}
NO_TABLE = NO_STORE - {"zarr"}
# Answers without a store are numpy's alone. (pint imports dask itself: 0.1 s.)
NO_PROGRAM = {"zarr", "xarray", "pandas", "dask.array", "distributed", "matplotlib"}


def test_commands_import_no_more_than_they_need(small_url, tmp_path):
    """From those that need nothing to those that need most: what is imported stays."""
    pair, runs, spec = (tmp_path / name for name in ("pair.yaml", "runs.csv", "spec.yaml"))
    pair.write_text("name: pair\noperators: {a: {forward: 1, backward: 1}}\n")
    runs.write_text(
        "model,dataset,strategy,p,samples_per_replica,total_s\nresnet5,imagenet,data,8,8,1\n"
    )
    spec.write_text("models: [alexnet]\n")
    stored = f"{small_url} --sel batch=16 --sel model=alexnet"
    one = "--model alexnet --dataset imagenet --system abci"
    hybrid = "hybrid --system abci --pe 8 --batch 8 --model"
    of_pal = f"hybrid --convergence {PAL} --model inception_v3 --batch 64 --pe 256"
    commands = [
        (NOTHING, "0 --version"),
        (NO_NUMBERS, "0 place --help"),
        (NO_NUMBERS, "2 predict --system abci --pe 8 --batch 8 --strategy data --model resnet5"),
        (NO_NUMBERS, "2 best --system abci --model resnet5"),
        (NO_NUMBERS, "2 place vgg16 --devices 2 --system abcd"),
        (NO_NUMBERS, "2 compare runs.csv --system abcd"),
        (NO_NUMBERS, "2 compare runs.csv --system abci --calibration abcd"),
        (NO_NUMBERS, "2 calibrate runs.csv -o fit.yaml --system abcd"),
        (NO_NUMBERS, "2 plot accuracy runs.csv --system abci -o accuracy.png --calibration abcd"),
        (NO_NUMBERS, f"2 {hybrid} resnet5"),
        (NO_NUMBERS, "2 leakage missing"),
        (NO_NUMBERS, f"2 plot scaling {small_url} -o x.bmp"),
        (NO_NUMBERS, f"2 plot map {one} --pe 8 -o nowhere/x.png"),
        (NO_NUMBERS, f"2 best {one} --report x.pdf"),
        (NO_NUMBERS, f"2 provision {one} --deadline tomorrow"),
        (NO_NUMBERS, f"2 provision {one} --deadline 60"),
        (NO_NUMBERS, f"2 limits {one} --efficiency 80"),
        (NO_NUMBERS, "2 best --model llama2_7b --system abci --pe 8 --tokens many"),
        (NO_NUMBERS, "2 best --model meta-llama/Llama-3.1-8B --system abci --pe 8"),
        (NO_NUMBERS, "2 sample spec.yaml rows --rows 1.5"),
        (NO_NUMBERS, "2 surrogate train missing -o mine.surrogate"),
        (NO_NUMBERS, "2 surrogate evaluate missing missing"),
        (NO_NUMBERS, "2 surrogate predict missing missing"),
        (NO_NUMBERS, f"2 {hybrid} resnet50 --dataset imagnet"),
        (NO_NUMBERS, f"2 {hybrid} resnet50 --system abcd"),
        (NO_NUMBERS, f"2 {hybrid} resnet50 --strategy data+spatil:group=2"),
        (NO_ARRAYS, "0 schema --answers"),
        (NO_ARRAYS, "0 hybrid --help"),
        (NO_ARRAYS, "2 place resnet5 --devices 2 --system abci --batch 8"),
        (NO_STORE, "2 predict --model llama2_7b --system abci --pe 8 --batch 1 --strategy tp8,pp1"),
        *((NO_STORE, f"0 list {kind}") for kind in ("models vgg16", "datasets", "systems")),
        (NO_STORE, "0 list strategies"),
        (NO_STORE, f"0 {of_pal} --speedup 2=1.32 --scaling-efficiency 1"),
        (NO_STORE, f"0 place {pair} --devices 2 --system dgx1-v100"),
        (NO_STORE, f"2 compare {runs} --system abci"),
        (NO_STORE, f"2 sweep {spec} {tmp_path}/out.zarr"),
        (NO_PROGRAM, f"apart 0 predict {one} --strategy data --pe 8 --batch 8"),
        (NO_TABLE, f"0 limits {stored}"),
        (NO_TABLE, f"0 best {stored} --format json"),
        (NO_TABLE, f"0 status {small_url} --format csv"),
        (NO_TABLE, f"2 bottleneck {small_url} --model resnet5"),
    ]
    command = [sys.executable, "-c", TELLING, *(command_line for _, command_line in commands)]
    environment = {**os.environ, "JAX_LOG_COMPILES": "1"}
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=True, env=environment
    )
    assert "Compiling" not in ended.stderr  # one program takes 2 s
    reports = [line for line in ended.stderr.splitlines() if line.startswith("imported: ")]
    for (unneeded, command_line), line in zip(commands, reports, strict=True):
        imported = set(json.loads(line.removeprefix("imported: ")))
        assert "paradl" in imported
        assert not unneeded & imported, command_line
