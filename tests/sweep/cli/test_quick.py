"""Questions that nothing has to be computed for do without what is slow to import."""

import subprocess
import sys
from pathlib import Path

PAL = Path(__file__).parents[3] / "examples" / "pal2019.csv"
SLICE = "--sel batch=16 --sel model=alexnet"
SLOW = {"jax", "xarray", "distributed"}

# Runs a command, then tells on stderr what has been imported.
TELLING = """
import sys
from sweep.cli.main import main
try:
    main()
finally:
    print("imported:", *{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""
# The same of several commands, an argument each.
TELLING_OF_EACH = """
import sys
from sweep.cli.main import main
for command in sys.argv[1:]:
    sys.argv = ["paradl", *command.split()]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, command
print("imported:", *{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


def imported(*arguments: str, telling: str = TELLING) -> set[str]:
    """The packages that a command imports, in a process of its own."""
    command = [sys.executable, "-c", telling, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout
    _, _, names = ended.stderr.rpartition("imported: ")
    assert "sweep" in names.split()
    return set(names.split())


def test_a_store_is_asked_with_numpy_and_zarr(small_url):
    asked = f"limits {small_url} {SLICE}", f"best {small_url} --format json {SLICE}"
    status = f"status {small_url} --format csv"
    assert not (SLOW | {"pandas"}) & imported(*asked, status, telling=TELLING_OF_EACH)


def test_the_catalogue_is_listed_without_a_store():
    """Models, data sets, systems and strategies, one after the other in one process."""
    kinds = "models", "datasets", "systems", "strategies"
    assert not (SLOW | {"zarr", "pandas"}) & imported(*kinds, telling=TELLING_OF_EACH)


def test_answers_are_described_without_the_oracle():
    assert not (SLOW | {"zarr", "pandas", "scipy"}) & imported("schema", "--answers")


def test_a_hybrid_whose_numbers_are_given_needs_no_oracle():
    given = ("--convergence", str(PAL), "--model", "inception_v3", "--batch", "64", "--pe", "256")
    asked = (*given, "--speedup", "2=1.32", "--scaling-efficiency", "1")
    assert not (SLOW | {"zarr", "pandas"}) & imported("hybrid", *asked)
    assert not (SLOW | {"zarr", "pandas", "scipy"}) & imported("hybrid", "--help")


def test_a_graph_is_placed_without_the_oracle(tmp_path):
    path = tmp_path / "pair.yaml"
    path.write_text("name: pair\noperators: {a: {forward: 1, backward: 1}}\n")
    asked = ("place", str(path), "--devices", "2", "--system", "dgx1-v100")
    assert not (SLOW | {"zarr", "pandas"}) & imported(*asked)
    assert not (SLOW | {"zarr", "pandas", "scipy", "numpy"}) & imported("place", "--help")


# What commands say on stderr of a slip, and end with 2.
TELLING_OF_SLIPS = TELLING_OF_EACH.replace("not ended.code", "ended.code == 2") + "print()"


def test_an_unknown_name_is_told_at_once():
    slips = (
        "predict --pe 8 --batch 8 --strategy data --model resnet5",
        "best --model resnet5",
        "place vgg16 --devices 2 --system abcd",
        "compare runs.csv --system abcd",
        "compare runs.csv --calibration abcd",
        "calibrate runs.csv -o fit.yaml --system abcd",
        "plot accuracy runs.csv -o accuracy.png --calibration abcd",
    )
    assert not (SLOW | {"zarr", "numpy", "scipy"}) & imported(*slips, telling=TELLING_OF_SLIPS)


def test_an_unknown_value_of_a_store_is_told_without_the_oracle(small_url):
    slip = f"bottleneck {small_url} --model resnet5"
    assert not SLOW & imported(slip, telling=TELLING_OF_SLIPS)


def test_an_unknown_graph_is_told_at_once():
    slip = "place resnet5 --devices 2 --batch 8"
    assert not (SLOW | {"zarr", "scipy"}) & imported(slip, telling=TELLING_OF_SLIPS)


def test_an_unknown_name_of_a_measured_run_is_told_at_once(tmp_path):
    runs = tmp_path / "runs.csv"
    runs.write_text(
        "model,dataset,strategy,p,samples_per_replica,total_s\nresnet5,imagenet,data,8,8,1\n"
    )
    assert not (SLOW | {"zarr"}) & imported(f"compare {runs}", telling=TELLING_OF_SLIPS)


def test_an_unknown_name_of_a_hybrid_is_told_at_once():
    asked = "hybrid --pe 8 --batch 8 --model"
    slips = (
        f"{asked} resnet5",
        f"{asked} resnet50 --dataset imagnet",
        f"{asked} resnet50 --system abcd",
        f"{asked} resnet50 --strategy data+spatil:group=2",
    )
    assert not (SLOW | {"zarr", "numpy", "scipy"}) & imported(*slips, telling=TELLING_OF_SLIPS)


def test_a_bad_spec_is_told_without_the_engine(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text("models: [alexnet]\n")
    command = f"sweep {path} {tmp_path / 'out.zarr'}"
    assert not (SLOW | {"zarr"}) & imported(command, telling=TELLING_OF_SLIPS)


def test_the_version_is_told_at_once():
    assert not (SLOW | {"zarr", "pandas", "numpy", "pydantic"}) & imported("--version")
