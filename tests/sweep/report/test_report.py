"""A report says what the questions answer, and its page works in a browser without a network."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import sweep
from sweep.report.contents import Report, collect_report
from sweep.report.page import render_page, write_page

AXES = {
    "model": ["alexnet", "vgg16"],
    "dataset": "imagenet",
    "system": ["abci", "dgx-h100"],
    "strategy": ["serial", "data", "data+filter:group=4"],
    "pe": [1, 2, 4, 8],
    "batch": [32, 64],
}
BROWSER = shutil.which("chromium")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("report") / "cube.zarr")
    sweep.run({"axes": AXES}, url)
    return url


@pytest.fixture(scope="module")
def report(url: str) -> Report:
    return collect_report(url)


def test_ranks_as_best_does(url, report):
    ranked = sweep.best(url)
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
        assert row["capacity"] in (16e9, 80e9)


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


AXES_OF = ("model", "dataset", "system")


def test_losers(url):
    """What forbids a strategy, and what would let it in."""
    losers = [row for row in collect_report(url, {"pe": [8]}).ranking if not row["feasible"]]
    assert {(row["strategy"], row["reason"], row["remedy"]) for row in losers} == {
        ("serial", "too_many_pes", "pe=1")
    }


def test_a_search_has_no_curves(tmp_path):
    sweep.run({"axes": AXES | {"model": "alexnet"}}, tmp_path / "s.zarr", reduce_only=True)
    report = collect_report(str(tmp_path / "s.zarr"))
    assert report.ranking
    assert not report.points
    assert any("no curves" in note for note in report.notes)


def test_command(url, tmp_path, paradl):
    page = tmp_path / "report.html"
    assert paradl("report", url, "-o", page, "--sel", "model=vgg16")[0] == 0
    assert page.stat().st_size < 5e6
    assert "--sel model=vgg16" in page.read_text()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("-o", "no/such/folder.html"), 2, "no/such"),
        (("-o", "report.html", "--sel", "model=vgg17"), 2, "vgg16"),
        (("-o", "report.html", "--sel", "strategy=serial", "--sel", "pe=8"), 4, "feasible"),
    ],
)
def test_bad_input(options, code, words, url, tmp_path, paradl, monkeypatch):
    monkeypatch.chdir(tmp_path)
    got, out, err = paradl("report", url, *options)
    assert (got, out, err.count("\n")) == (code, "", 1)
    assert words in err
    assert not list(tmp_path.iterdir())


def test_loads_nothing(report):
    """The policy forbids every request, and no address is in what the page adds to the library."""
    page = remove_scripts(render_page(report, "paradl report"))
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href)=", page)


def remove_scripts(document: str) -> str:
    return re.sub(r"<script[^>]*>.*?</script>", "<script></script>", document, flags=re.S)


def open_page(path: Path, home: Path, fragment: str = "") -> str:
    """The document as the browser has it, once its scripts have run."""
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={home}", "--virtual-time-budget=10000", "--enable-logging=stderr"]
    done = subprocess.run(
        [*command, "--dump-dom", f"{path.as_uri()}{fragment}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Uncaught" not in done.stderr
    assert "Refused" not in done.stderr
    return done.stdout


def find_answer(document: str) -> str:
    found = re.search(r'<p id="answer"[^>]*>(.*?)</p>', document, re.S)
    assert found is not None
    return found.group(1)


@needs_browser
def test_in_a_browser(report, tmp_path):
    """The answer is there, charts are drawn, and the fragment selects another place."""
    write_page(report, tmp_path / "report.html", "paradl report")
    document = open_page(tmp_path / "report.html", tmp_path / "home")
    assert "alexnet on abci" in find_answer(document)
    assert document.count("<svg") >= 7
    chosen = open_page(tmp_path / "report.html", tmp_path / "home", "#model=vgg16&system=dgx-h100")
    assert "vgg16 on dgx-h100" in find_answer(chosen)


@needs_browser
def test_hostile_names(report, tmp_path):
    """Text of a user is text on the page, wherever it comes from."""
    hostile = "</script><script>document.title = 'taken'</script><img src=x onerror=alert(1)>"
    changed = replace(
        report,
        title=hostile,
        ranking=[row | {"system": hostile, "model": hostile} for row in report.ranking],
        spec={hostile: hostile},
        basis={hostile: hostile},
        notes=[hostile],
    )
    write_page(changed, tmp_path / "report.html", hostile)
    document = remove_scripts(open_page(tmp_path / "report.html", tmp_path / "home"))
    assert "&lt;img" in document
    assert "<title>taken</title>" not in document
    assert "<img" not in document
