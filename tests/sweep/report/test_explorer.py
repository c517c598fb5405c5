"""The explorer answers from a cube as the questions do, to its own page alone."""

import json
import re
import signal
import webbrowser
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from queue import Queue
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from browser import find_violations, needs_browser, open_browser
from tornado.ioloop import IOLoop

import sweep
from sweep.report.explorer import Explorer, serve

PLACE = {"model": "alexnet", "dataset": "imagenet", "system": "abci"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("explore") / "cube.zarr")
    axes = {name: [value] for name, value in PLACE.items()} | {"system": ["abci", "dgx-h100"]}
    strategies = ["data", "data+filter:group=4"]
    sweep.run({"axes": {**axes, "strategy": strategies, "pe": [4, 8], "batch": [32, 64]}}, url)
    return url


@pytest.fixture(scope="module")
def address(url: str) -> Iterator[str]:
    """The address of an explorer that a thread serves; a process took 6 s of CPU to import."""
    started = Queue[tuple[str, IOLoop]]()

    def answer() -> None:
        address, run = serve(Explorer(url, {}, None), 0)
        started.put((address, IOLoop.current()))
        run()

    with ThreadPoolExecutor() as threads:
        threads.submit(answer)
        address, loop = started.get(timeout=60)
        yield address
        loop.add_callback(loop.stop)


def request(
    address: str, path: str, query: Mapping[str, object], host: str = ""
) -> tuple[int, str]:
    parts = urlsplit(address)
    token = parts.query.removeprefix("token=")
    with closing(HTTPConnection(parts.netloc, timeout=30)) as connection:
        headers = {"Host": host} if host else {}
        connection.request("GET", f"{path}?{urlencode({'token': token, **query})}", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def read_times(text: str) -> list[float]:
    column = json.loads(text)["tables"]["ranking"]["columns"]["epoch_time"]
    return [float(value) for value in column["values"]]


def test_rows(address, url):
    """The ranking of a place is that of `best`."""
    status, text = request(address, "/rows", PLACE)
    assert status == 200
    expected = sweep.best(url, {"system": ["abci"]})["epoch_time"].tolist()
    assert read_times(text) == pytest.approx(expected, rel=1e-4)


def test_a_parameter_that_is_no_axis(address):
    """Links of a fiftieth take as much longer as predict says."""
    value = 1e9
    _, text = request(address, "/rows", {**PLACE, "set.intra_bandwidth": value})
    settings: dict[str, Any] = {"dataset": "imagenet", "system": "abci"}
    settings["parameters"] = {"intra_bandwidth": value}
    predicted = [sweep.predict("alexnet", "data", pe, 64, **settings) for pe in (4, 8)]
    expected = min(answer["epoch_time"] for answer in predicted)
    assert min(read_times(text)) == pytest.approx(expected, rel=1e-4)


def test_explain(address):
    cell = {"strategy": "data", "pe": 8, "batch": 32}
    status, text = request(address, "/explain", {**PLACE, **cell})
    assert status == 200
    answer = sweep.explain("alexnet", "data", 8, 32, dataset="imagenet", system="abci")
    assert json.loads(text)["sentence"] == answer["sentence"]


def test_another_system(address):
    """Only one of the cube's systems has a calibration: the other is explained, too."""
    place = PLACE | {"system": "dgx-h100"}
    assert (
        request(address, "/explain", {**place, "strategy": "data", "pe": 8, "batch": 32})[0] == 200
    )
    assert request(address, "/rows", {**place, "set.intra_bandwidth": 1e9})[0] == 200


def test_details(address):
    """Details add the parts of the ranked strategies to the rows of the place."""
    rows, details = (request(address, f"/{what}", PLACE)[1] for what in ("rows", "details"))
    assert json.loads(rows)["tables"]["parts"]["length"] == 0
    assert json.loads(details)["tables"]["parts"]["length"] > 0
    assert read_times(rows) == read_times(details)


def test_a_layout(tmp_path):
    """A row of a layout axis is explained by its words."""
    rows = {"tensor": [1, 8], "pipeline": [1, 2]}
    axes = {"model": "llama3_8b", "dataset": "pile:length=4096", "system": "dgx-h100"}
    space = {**axes, "strategy": "data+tensor+pipeline", "pe": 16, "batch": 64}
    url = str(tmp_path / "cube.zarr")
    sweep.run({"axes": space | {"layout": {"product": rows}}, "scaling": "strong"}, url)
    explorer = Explorer(url, {}, None)
    cell = {**axes, "strategy": "data+tensor+pipeline", "pe": 16.0, "batch": 64.0, "layout": 3.0}
    answer = explorer.explain(tuple(cell.items()), ())
    expected = sweep.explain(
        "llama3_8b",
        "data+tensor+pipeline:tensor=8,pipeline=2",
        16,
        64,
        dataset="pile:length=4096",
        system="dgx-h100",
        settings={"scaling": "strong"},
    )
    assert answer["sentence"] == expected["sentence"]


def test_page(address):
    """It may ask its own server, and no other."""
    status, text = request(address, "/", {})
    assert status == 200
    assert "connect-src 'self'" in text
    assert re.search(r"default-src 'none'", text)


@needs_browser
def test_in_a_browser(address, tmp_path):
    """A moved slider changes the answer, a button explains a row, and axe-core finds nothing."""
    with open_browser(tmp_path) as browser:
        browser.open(address)
        before = browser.read("#answer")
        browser.evaluate(
            """{const slider = document.querySelector("input[type=range]");
            slider.value = 0.5;
            slider.dispatchEvent(new Event("change"));}"""
        )
        browser.wait()
        assert browser.read("#answer") != before
        browser.evaluate(
            """document.querySelectorAll("details").forEach(table => {table.open = true});
            document.querySelector("#ranking-table button").click()"""
        )
        browser.evaluate(
            """new Promise(done => {const look = () =>
            document.activeElement.id === "explanation-title" ? done() : setTimeout(look, 20);
            look()})"""
        )
        assert "of the time" in browser.read("#explained")
        assert find_violations(browser) == []
        assert not browser.messages
        assert all(url.startswith(address.partition("?")[0]) for url in browser.requests)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"token": "guessed"}, 403),
        ({"model": "alexnt"}, 400),
        ({"colour": "red"}, 400),
        ({"set.inter_bandwidth": "nan"}, 400),
        ({"set.no_such": "1"}, 400),
        ({"set.inter_bandwidth": "1e9", "dataset": "no-such"}, 400),
        ({"set.inter_bandwidth": "-1"}, 400),
    ],
)
def test_bad_requests(changes, status, address):
    got, text = request(address, "/rows", PLACE | changes)
    assert got == status
    assert "Traceback" not in text


def test_another_name_of_this_machine(address):
    """As pages of others would have it, whose name leads here (DNS rebinding)."""
    assert request(address, "/rows", PLACE, host="elsewhere.example")[0] == 403


def test_command(url, paradl, monkeypatch):
    """A browser opens the address that is printed; Ctrl-C ends the command without a traceback."""
    answers: list[Future[tuple[int, str]]] = []

    def open_page(address: str) -> None:
        loop = IOLoop.current()
        answer = threads.submit(request, address, "/", {})
        # What Python calls at Ctrl-C; a test run in the background does not hear the signal itself.
        interrupt = partial(signal.default_int_handler, signal.SIGINT, None)
        answer.add_done_callback(lambda _: loop.add_callback(interrupt))
        answers.append(answer)

    monkeypatch.setattr(webbrowser, "open", open_page)
    with ThreadPoolExecutor() as threads:
        code, out, err = paradl("explore", url)
    IOLoop.current().close(all_fds=True)
    assert [answer.result()[0] for answer in answers] == [200]
    assert (code, out.count("\n")) == (130, 1)
    assert "Traceback" not in err


def test_a_port_that_is_taken(address, url):
    with pytest.raises(sweep.InputError, match="--port"):
        serve(Explorer(url, {}, None), int(urlsplit(address).port or 0))
