"""`paradl plot KIND STORE`: a file, or one message and an exit code."""

import shlex

import pytest

import paradl

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

SEL = ("--sel", "model=alexnet", "--sel", "batch=16")
SIGNATURES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize(
    ("kind", "more", "suffix"),
    [
        ("breakdown", (*SEL, "--sel", "strategy=data+channel", "--size", "slide"), "pdf"),
        ("pareto", (*SEL, "--against", "memory"), "svg"),
    ],
)
def test_pictures_are_files(kind, more, suffix, cli, small_url, tmp_path):
    path = tmp_path / f"picture.{suffix}"
    command = ("plot", kind, small_url, "-o", path, *more)
    assert cli(*command) == (0, "", f"paradl: wrote {path}\n")
    assert cli(*command, "--quiet") == (0, "", "")
    assert path.read_bytes().startswith(SIGNATURES[suffix])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("scalin",), 2, "'scaling'"),
        (("scaling",), 2, "--sel model=alexnet --sel batch=16"),
        (("scaling", "--sel", "batch=16"), 2, "--sel model=alexnet "),
        (("scaling", "--sel", "batsh=8"), 2, "batch"),
        (("scaling", *SEL, "--quantity", "speed"), 2, "'efficiency'"),
        (("map", *SEL), 2, "--sel"),
        (("map", "--sel", "model=alexnet", "--over", "bath"), 2, "'batch'"),
        (("breakdown", *SEL), 2, "--sel strategy="),
        (("memory", *SEL), 2, "--sel pe="),
        (("scaling", *SEL, "-o", "x.gif"), 2, "x.png"),
        (("scaling", *SEL, "--sel", "strategy=serial", "--sel", "pe=8"), 4, "too many PEs"),
        (("scaling", *SEL, "-o", "none.xyz"), 2, "none.xyz"),
        (("scaling", *SEL, "-o", "none/x.png"), 2, "none/x.png"),
        (("scaling", *SEL, "-o", f"{__file__}/x.png"), 2, "x.png"),
        (("pareto", "--sel", "model=alexnet", "--against", "euros"), 2, "'memory'"),
        (("sensitivity", *SEL), 2, "--sel strategy="),
    ],
)
def test_one_message_and_an_exit_code(arguments, code, message, cli, small_url, tmp_path):
    kind, *more = arguments
    output = () if "-o" in more else ("-o", tmp_path / "picture.png")
    ended, out, err = cli("plot", kind, small_url, *output, *more)
    assert (ended, out) == (code, "")
    assert message in " ".join(err.split())
    assert "Traceback" not in err
    assert len(err) < 1000
    assert not list(tmp_path.iterdir())


def test_a_design_space_needs_no_store(cli, tmp_path):
    path = tmp_path / "picture.png"
    space = ("--model", "alexnet", "--dataset", "imagenet", "--system", "abci", "--oracle", "paper")
    command = ("plot", "scaling", *space, "--pe", "1,2,4", "--strategy", "data", "-o", path)
    code, _, err = cli(*command)
    assert (code, "--batch 1" in err) == (2, True)
    assert cli(*command, "--batch", "8", "--quiet") == (0, "", "")
    assert path.read_bytes().startswith(SIGNATURES["png"])


def test_a_dataset_and_its_slices_draw(small_url):
    cube = paradl.open_dataset(small_url)
    part = cube.sel(model="alexnet", dataset="imagenet", batch=16)
    figure = part.paradl.plot.scaling("throughput")
    assert figure.axes[0].get_ylabel() == "throughput [samples/s]"
    assert cube.paradl.plot.map(selection={"model": "alexnet"}).axes
    with pytest.raises(paradl.InputError, match="unknown size"):
        part.paradl.plot.scaling(size="papyrus")


def test_advice_on_a_design_space(cli, tmp_path):
    """A space without a store has options and nothing to select; the advice works as it is."""
    place = ("--model", "alexnet", "--dataset", "imagenet", "--system", "abci")
    space = (*place, "--strategy", "data")
    output = ("-o", tmp_path / "x.png")
    for several in (("--pe", "2,4", "--batch", "8"), ("--pe", "2", "--batch", "8,16")):
        code, _, err = cli("plot", "sensitivity", *space, *several, *output)
        assert (code, "--sel" in err) == (2, False)
    wide = ("--pe", "2,4", "--batch", "8,16", "--set", "inter_bandwidth=10 GB/s,20 GB/s")
    code, _, err = cli("plot", "sensitivity", *space, *wide, *output)
    advice = shlex.split(err.partition("such as ")[2].partition(" (known")[0])
    assert cli("plot", "sensitivity", *space, *advice, *output)[0] == 0
