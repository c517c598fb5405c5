"""A report says what the questions answer, and its page works in a browser without a network."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pytest
import vl_convert
from browser import Browser, find_violations, needs_browser, open_browser

import paradl
from paradl.grids.grid import Grid
from paradl.grids.spec import validate_spec
from paradl.sweep.cli.main import main
from paradl.sweep.plots.looks import MEMORY_LOOKS, TERM_LOOKS
from paradl.sweep.report.charts import make_charts
from paradl.sweep.report.contents import rank_places
from paradl.sweep.report.page import write_page
from paradl.sweep.report.report import Report, collect_report
from paradl.sweep.text.sentences import describe_best

AXES = {
    "model": ["alexnet", "vgg16"],
    "dataset": "imagenet",
    "system": ["abci", "dgx-h100"],
    "strategy": ["serial", "data", "data+filter:group=4"],
    "pe": [1, 2, 4, 8],
    "batch": [32, 64],
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("report") / "cube.zarr")
    paradl.run({"axes": AXES}, url)
    return url


@pytest.fixture(scope="module")
def report(url: str) -> Report:
    return collect_report(url)


def test_ranks_as_best_does(url, report):
    ranked = paradl.best(url)
    for column in ("model", "system", "strategy", "pe", "epoch_time"):
        assert [row[column] for row in report.ranking] == ranked[column].tolist()


def test_parts_add_up(report):
    """The terms of a strategy are its time, the parts its memory; and there is a capacity."""
    for row in report.ranking:
        same = [
            part
            for part in report.parts
            if all(part[name] == row[name] for name in (*report.selectors, "strategy"))
        ]
        for kind, total in (("time", row["epoch_time"]), ("memory", row["memory"])):
            amounts = [part["amount"] for part in same if part["kind"] == kind]
            assert sum(amounts) == pytest.approx(total, rel=1e-5)
        assert row["capacity"] in (16e9, 79.1 * 2**30)


def test_charts_are_of_vegas_schema(report, layouts):
    for chart in (*make_charts(report), *make_charts(rank_places(layouts, None, None))):
        if chart.spec:
            alt.TopLevelSpec.validate(chart.spec)


def test_parts_look_as_in_pictures(report):
    """Each part has a place in its stack, and the colour of plots."""
    for chart in make_charts(report):
        if chart.name in ("time", "memory"):
            parts = {row["part"] for row in report.parts if row["kind"] == chart.name}
            assert parts <= {*chart.order}
            colours = json.dumps(chart.spec)
            looks = TERM_LOOKS if chart.name == "time" else MEMORY_LOOKS
            assert all(look["facecolor"] in colours for look in looks.values())


LLAMA: dict[str, Any] = {
    "model": "llama3_8b",
    "dataset": "pile:length=4096",
    "system": "dgx-h100",
    "strategy": "data+tensor+pipeline:micro=1",
    "pe": [16, 32],
    "batch": 64,
    "layout": {"product": {"tensor": [4, 8], "pipeline": [1, 2], "recompute": ["none", "blocks"]}},
}


@pytest.fixture(scope="module")
def layouts(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("layouts") / "cube.zarr")
    paradl.run({"axes": LLAMA, "scaling": "strong"}, url)
    return url


def test_curves_show_the_best_layout(layouts):
    """At each PE count the fastest one of the cube, in its words; a note says so."""
    cube = paradl.open_dataset(layouts).squeeze(drop=True).load()
    report = rank_places(layouts, None, None)
    times = cube.paradl.epoch_time.where(cube.paradl.feasible)
    for point in report.points:
        here = times.sel(pe=point["pe"]).values
        assert point["time"] == np.nanmin(here)
        best = cube["tensor"].values[np.nanargmin(here)]
        assert f"tp{best} " in point["name"]
    assert len(report.points) == 2 * len(LLAMA["pe"])  # the best choice, and that of the batch
    assert any("--sel tensor" in note for note in report.notes)


LLAMA_TEXT = ("--sequence", 4096, "--global-batch", 128)


def test_page_of_layouts(tmp_path, cli):
    """`best` of layouts writes its page, too, and prints the same as without."""
    options = ("best", "--model", "llama3_8b", "--pe", 16, "--system", "dgx-h100", *LLAMA_TEXT)
    # Not what stderr says: on a busy machine, that it takes long.
    plain, paged = cli(*options), cli(*options, "--report", tmp_path / "page.html")
    assert paged[:2] == plain[:2]
    assert "pile:length=4096" in (tmp_path / "page.html").read_text()


def test_pages_show_what_the_software_runs(tmp_path, cli):
    options = ("--model", "llama3_8b", "--pe", "16", *LLAMA_TEXT)
    page = ("--system", "dgx-h100:software=megatron", "--report", tmp_path / "page.html")
    _, out, _ = cli("best", *options, *page, "--format", "json")
    rows, text = json.loads(out), (tmp_path / "page.html").read_text()
    lacking = [row["layout"] for row in rows if "unsupported" in row["limit"]]
    assert rows[0]["layout"] in text
    assert not any(layout in text for layout in lacking)


def test_curves_end_at_the_ranking(report):
    """The best choice at the best PE count is the ranked cell."""
    for row in report.ranking:
        curve = [
            point["time"]
            for point in report.points
            if point["choice"] == "best"
            and point["time"] is not None
            and all(point[name] == row[name] for name in (*report.selectors, "strategy"))
        ]
        assert min(curve) == pytest.approx(row["epoch_time"])


def test_front(report):
    """No point of a place beats one of its front in both time and PE-hours."""
    best = [point for point in report.points if point["choice"] == "best" and point["time"]]
    front = [point for point in best if "front" in point]
    assert sum(point["front"] == "knee" for point in front) == 4  # one in each place
    for point in front:
        rivals = (rival for rival in best if all(rival[name] == point[name] for name in AXES_OF))
        assert not any(
            rival["time"] < point["time"] and rival["pe_hours"] < point["pe_hours"]
            for rival in rivals
        )


def test_the_front_promises_no_faster_configuration(report):
    """Its line leaves out what lies between two points: there, the slower one is the best."""
    chart = next(chart for chart in make_charts(report) if chart.name == "trade")
    costs = ((1.0, 16.0), (2.0, 4.0), (4.0, 1.0))
    rows = [
        {"strategy": "data", "time": time, "pe_hours": cost, "front": "front"}
        for time, cost in costs
    ]
    assert chart.spec
    svg = vl_convert.vegalite_to_svg(chart.spec | {"width": 100, "datasets": {"rows": rows}})
    path = re.search(r'mark-line.*?d="M([^"]*)"', svg, re.DOTALL)
    assert path
    corners = [corner.split(",") for corner in path[1].split("L")]
    # From the fastest: to the time of the next one, then to its cost.
    assert corners[1] == [corners[0][0], corners[2][1]]
    assert corners[3] == [corners[2][0], corners[4][1]]


AXES_OF = ("model", "dataset", "system")
PLACE: Any = {"model": "vgg16", "system": "dgx-h100"}


def test_losers(url):
    """What forbids a strategy, and what would let it in."""
    report = collect_report(url, PLACE | {"pe": [8]})
    losers = [row for row in report.ranking if not row["feasible"]]
    assert {(row["strategy"], row["remedy"]) for row in losers} == {("serial", "pe=1")}
    assert all("PEs" in row["reason"] for row in losers)


def test_a_search_has_no_curves(tmp_path):
    paradl.run({"axes": AXES | PLACE}, tmp_path / "s.zarr", reduce_only=True)
    report = collect_report(str(tmp_path / "s.zarr"))
    assert report.ranking
    assert not report.points
    assert any("no curves" in note for note in report.notes)


def test_command(url, tmp_path, cli):
    """The policy forbids every request, and no address is in what the page adds to the library."""
    path = tmp_path / "report.html"
    options = ("--sel", "model=vgg16", "--sel", "system=abci")
    assert cli("report", url, "-o", path, *options)[0] == 0
    assert path.stat().st_size < 5e6
    page = re.sub(r"<script[^>]*>.*?</script>", "<script></script>", path.read_text(), flags=re.S)
    assert "--sel model=vgg16 --sel system=abci" in page
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href)=", page)


ALEXNET = (
    *("--model", "alexnet", "--dataset", "imagenet", "--system", "abci"),
    *("--strategy", "data,spatial"),
    *("--pe", "2,4", "--batch", "32", "--oracle", "paper"),
)


def test_a_page_opens_on_the_winner(url):
    """The second machine is cheaper: its place, and its sentence, come first."""
    report = collect_report(url, {"model": ["vgg16"]}, None, "cost", {"abci": 1.0, "dgx-h100": 3.0})
    best = min((row for row in report.ranking if row["rank"] == 1), key=lambda row: row["value"])
    assert report.opening == {"model": "vgg16", "dataset": "imagenet", "system": "dgx-h100"}
    assert best["system"] == "dgx-h100"
    (text,) = (row["text"] for row in report.answers if row["system"] == "dgx-h100")
    for word in ("vgg16", "imagenet", "dgx-h100", "amp", best["strategy"]):
        assert word in text


def test_the_winner_survives_thinning():
    """Of 60 batches the page has room for fewer, and of 54 places."""
    axes = {
        **{"model": "alexnet", "dataset": "imagenet", "strategy": "data", "pe": [4, 8]},
        "system": ["abci", "dgx1-v100", "dgx-h100"],
        "batch": {"range": [1, 60]},
        "inter_bandwidth": [f"{value} GB/s" for value in range(1, 19)],
    }
    grid = Grid.from_spec(validate_spec({"axes": axes, "oracle": "paper"}, ""), Path())
    with pytest.raises(paradl.InputError, match=r"24 places .* got 54"):
        collect_report(grid)
    chosen: Any = {"inter_bandwidth": ["1 GB/s", "18 GB/s"]}
    report = collect_report(grid, chosen)
    best = paradl.best(grid, chosen).sort_values("epoch_time").iloc[0]
    (winner,) = (row for row in report.ranking if row.items() >= report.opening.items())
    assert winner["epoch_time"] == best["epoch_time"]
    here = [row for row in report.points if row.items() >= report.opening.items()]
    assert best["batch"] in {row["batch"] for row in here if row["choice"] != "best"}


@pytest.mark.parametrize("oracle", ["paper", "machine"])
def test_what_speaks_against_the_winner(oracle):
    """A batch beyond what is known to converge, and a memory that is nearly full."""
    axes = {"model": "alexnet", "dataset": "imagenet", "system": "abci", "pe": 256}
    space = {"axes": {**axes, "strategy": ["data", "data+filter:group=2"], "batch": 64}}
    grid = Grid.from_spec(validate_spec({**space, "oracle": oracle}, ""), Path())
    report = collect_report(grid)
    assert "16,384 converges is not modelled" in report.answers[0]["text"]
    full = report.ranking[0] | {"memory": 15.9e9, "capacity": 16e9}
    assert "99% of the memory" in describe_best([full], "epoch_time", "fp32", "")


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        (("provision", "--deadline", "5 h", "--epochs", "30"), ("5 h", "{pe:.0f} PE")),
        (("limits",), ("furthest", "{largest_pe:.0f} PEs")),
        (("pareto", "--against", "memory"), ("memory", "Least memory")),
    ],
)
def test_a_page_answers_what_was_asked(verb, words, tmp_path, cli):
    """Its sentence begins with the answer that the terminal prints; its first chart draws it."""
    path = tmp_path / "page.html"
    _, out, _ = cli(*verb, *ALEXNET, "--format", "json", "--report", path)
    row = json.loads(out)[0]
    text = path.read_text()
    answer = re.search(r'<p id="answer"[^>]*>(.*?)</p>', text)
    assert answer
    for word in words:
        assert word.format(**row) in answer[1].partition(" Fastest of all: ")[0]
    assert re.findall(r'data-chart="(\w+)"', text)[0] == "asked"


def test_limits_lead_each_place_of_a_page(tmp_path, cli):
    """Each swept bandwidth has its own rows: a place that is slower loses none to another."""
    bandwidths = ("--set", "inter_bandwidth=1 GB/s,10 GB/s")
    path = tmp_path / "page.html"
    _, out, _ = cli("limits", *ALEXNET, *bandwidths, "--format", "json", "--report", path)
    match = re.search(r'id="data">(.*?)</script>', path.read_text(), flags=re.S)
    assert match
    tables = json.loads(match[1])["tables"]
    assert tables["asked"]["length"] == len(json.loads(out)) == 4
    texts = tables["answers"]["columns"]["text"]["texts"]
    assert all("scales furthest" in text for text in texts)


def test_a_page_is_written_though_nobody_reads_the_table(tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    read, write = os.pipe()
    os.close(read)
    monkeypatch.setattr("sys.argv", ["paradl", "best", *ALEXNET, "--report", str(page)])
    with open(write, "w") as nobody, suppress(SystemExit):
        monkeypatch.setattr("sys.stdout", nobody)
        main()
    assert "alexnet" in page.read_text()


def test_a_page_answers_without_scripts(report, tmp_path):
    """The winner's sentence and its ranking are text of the page, for print and readers."""
    write_page(report, tmp_path / "page.html", "paradl report")
    text = re.sub(r"<script.*?</script>", "", (tmp_path / "page.html").read_text(), flags=re.S)
    row = next(row for row in report.answers if row.items() >= report.opening.items())
    assert escape(row["text"]) in text
    for rank in report.ranking:
        if rank.items() >= report.opening.items() and rank["feasible"]:
            assert f"<td>{escape(rank['name'])}</td>" in text


@pytest.mark.parametrize(
    "verb",
    [
        ("best", "--objective", "cost", "--price", "2"),
        ("limits",),
        ("pareto",),
        ("provision", "--deadline", "1 h", "--epochs", "1"),
    ],
)
def test_beside_an_answer(verb, tmp_path, cli):
    """A question without a store writes its page, too, and prints the same as without."""
    options = ALEXNET
    # Not what stderr says: on a busy machine, that it takes long.
    plain = cli(*verb, *options)
    assert cli(*verb, *options, "--report", tmp_path / "page.html")[:2] == plain[:2]
    assert "alexnet" in (tmp_path / "page.html").read_text()
    assert cli(*verb, *options, "--report", tmp_path / "no" / "page.html")[0] == 2


def test_objective(url):
    """A report ranks by what it is to minimise."""
    goal: Any = {"objective": "cost", "price": {"abci": 1.0, "dgx-h100": 8.0}}
    chosen = {"model": ["alexnet"]}
    report = collect_report(url, chosen, **goal)
    expected = paradl.best(url, chosen, **goal)
    assert [row["value"] for row in report.ranking] == expected["cost"].tolist()


def test_function(url, tmp_path):
    paradl.write_report(url, tmp_path / "report.html", PLACE | {"pe": [4]}, objective="pe_hours")
    assert "objective=&#39;pe_hours&#39;" in (tmp_path / "report.html").read_text()
    with pytest.raises(paradl.InputError):
        paradl.write_report(url, tmp_path / "no" / "report.html")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("-o", "no/such/folder.html"), 2, "no/such"),
        (("-o", "report.html", "--sel", "model=vgg17"), 2, "vgg16"),
        (("-o", "report.html", "--sel", "strategy=serial", "--sel", "pe=8"), 4, "feasible"),
    ],
)
def test_bad_input(options, code, words, url, tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    got, out, err = cli("report", url, *options)
    assert (got, out, err.count("\n")) == (code, "", 1)
    assert words in err
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("home")) as browser:
        yield browser


@pytest.fixture(scope="module")
def page(report: Report, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(report, path, "paradl report")
    return path.as_uri()


@needs_browser
def test_in_a_browser(browser, page):
    """The answer is there and charts are drawn, without a word on the console or a request."""
    browser.open(page)
    assert "alexnet" in browser.read("#answer")
    assert browser.evaluate("document.querySelectorAll('.chart svg').length") == 7
    assert not browser.messages
    assert browser.requests == [page]


@needs_browser
def test_selectors(browser, page, report):
    """A selector changes the answer, the curves and the address, which shows the same again."""
    browser.open(page)
    rows = "document.querySelectorAll('#scaling-table tbody tr').length"
    before = browser.evaluate(rows)
    for name, value in (("system", "dgx-h100"), ("batch", "32")):
        browser.evaluate(
            f"""{{const select = document.querySelector('select[name={name}]');
            select.value = "{value}";
            select.dispatchEvent(new Event("change"));}}"""
        )
        browser.wait()
    assert "dgx-h100" in browser.read("#answer")
    curve = browser.evaluate(
        "[...document.querySelectorAll('#scaling-table tbody tr')].map(row => row.textContent)"
    )
    assert 0 < len(curve) < before
    assert all("batch 32" in row for row in curve)
    shared = browser.evaluate("location.href")
    browser.open(shared)
    assert browser.evaluate("document.querySelector('select[name=batch]').value") == "32"
    assert browser.evaluate(rows) == len(curve)


@needs_browser
def test_keyboard(browser, page):
    """The first thing that Tab reaches is the first selector."""
    browser.open(page)
    browser.press("Tab", 9)
    assert browser.evaluate("document.activeElement.name") == "model"


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(400, False), (1400, True)])
def test_accessible(width, dark, browser, page):
    """axe-core finds nothing, with all tables open; a phone need not scroll sideways."""
    browser.open(page, width, dark)
    browser.evaluate("document.querySelectorAll('details').forEach(table => {table.open = true})")
    assert find_violations(browser) == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@needs_browser
def test_print(browser, page):
    """On paper charts fit the sheet, and there is nothing to choose from."""
    browser.open(page)
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.call("Emulation.setDeviceMetricsOverride", **PAPER)
    widths = "[...document.querySelectorAll('.chart svg')].map(svg => svg.clientWidth)"
    assert max(browser.evaluate(widths)) <= PAPER["width"]
    assert browser.evaluate("document.querySelector('form').clientHeight") == 0
    browser.call("Emulation.setEmulatedMedia", media="")


# A sheet of A4 without its margins, in CSS pixels.
PAPER = {"width": 718, "height": 1047, "deviceScaleFactor": 1, "mobile": False}


@needs_browser
def test_hostile_names(report, browser, tmp_path):
    """Text of a user is text on the page, wherever it comes from."""
    hostile = "</script><script>document.title = 'taken'</script><img src=x onerror=alert(1)>"
    changed = replace(
        report,
        title=hostile,
        selectors=report.selectors | {"system": [hostile], "model": [hostile]},
        opening=report.opening | {"system": hostile, "model": hostile},
        answers=[{**report.opening, "system": hostile, "model": hostile, "text": hostile}],
        ranking=[
            row | {"system": hostile, "model": hostile, "name": hostile, "reason": hostile}
            for row in report.ranking
        ],
        points=[
            row | {"system": hostile, "model": hostile, "name": hostile} for row in report.points
        ],
        spec={hostile: hostile},
        basis={hostile: hostile},
        notes=[hostile],
    )
    write_page(changed, tmp_path / "report.html", hostile)
    browser.open((tmp_path / "report.html").as_uri())
    assert "<img" in browser.read("#answer")
    assert browser.evaluate("document.title") == hostile
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert not browser.messages


def test_a_page_of_memory_is_refused(url, tmp_path, cli):
    """The chart of memory is part of every page, which ranks by times and what these cost."""
    place = ("--sel", "pe=4")
    for asked in (("report", url, "-o"), ("best", url, "--report")):
        code, _, err = cli(*asked, tmp_path / "page.html", "--objective", "memory", *place)
        assert code == 2
        assert "'memory'" in err
    assert not [*tmp_path.glob("*.html")]
