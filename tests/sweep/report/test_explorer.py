"""The explorer answers from a cube as the questions do, to its own page alone."""

import json
import re
import shutil
import signal
import webbrowser
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from queue import Queue
from socket import create_connection
from threading import Event
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from browser import find_violations, needs_browser, open_browser
from tornado.ioloop import IOLoop

import paradl
from paradl.sweep.report.explorer import Explorer, serve

PLACE = {"model": "alexnet", "dataset": "imagenet", "system": "abci"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("explore") / "cube.zarr")
    axes = {name: [value] for name, value in PLACE.items()} | {"system": ["abci", "dgx-h100"]}
    strategies = ["data", "data+filter:group=4"]
    paradl.run({"axes": {**axes, "strategy": strategies, "pe": [4, 8], "batch": [32, 64]}}, url)
    return url


@contextmanager
def serving(explorer: Explorer) -> Iterator[str]:
    """The address of an explorer that a thread serves; a process took 6 s of CPU to import."""
    started = Queue[tuple[str, IOLoop]]()

    def answer() -> None:
        address, run = serve(explorer, 0)
        started.put((address, IOLoop.current()))
        run()

    with ThreadPoolExecutor() as threads:
        threads.submit(answer)
        address, loop = started.get(timeout=60)
        yield address
        loop.add_callback(loop.stop)


@pytest.fixture(scope="module")
def address(url: str) -> Iterator[str]:
    with serving(Explorer(url, {}, None)) as address:
        yield address


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
    expected = paradl.best(url, {"system": ["abci"]})["epoch_time"].tolist()
    assert read_times(text) == pytest.approx(expected, rel=1e-4)


def test_a_parameter_that_is_no_axis(address, url):
    """Links of a tenth take as much longer as predict says."""
    factor = 0.1
    value = factor * Explorer(url, {}, None).sliders["intra_bandwidth"]["abci"]
    _, text = request(address, "/rows", {**PLACE, "times.intra_bandwidth": factor})
    settings: dict[str, Any] = {"dataset": "imagenet", "system": "abci"}
    settings["parameters"] = {"intra_bandwidth": value}
    predicted = [paradl.predict("alexnet", "data", pe, 64, **settings) for pe in (4, 8)]
    expected = min(answer["epoch_time"] for answer in predicted)
    assert min(read_times(text)) == pytest.approx(expected, rel=1e-4)


def test_explain(address):
    cell = {"strategy": "data", "pe": 8, "batch": 32}
    status, text = request(address, "/explain", {**PLACE, **cell})
    assert status == 200
    answer = paradl.explain("alexnet", "data", 8, 32, dataset="imagenet", system="abci")
    assert json.loads(text)["sentence"] == answer["sentence"]


def test_another_system(address):
    """Only one of the cube's systems has a calibration: the other is explained, too."""
    place = PLACE | {"system": "dgx-h100"}
    assert (
        request(address, "/explain", {**place, "strategy": "data", "pe": 8, "batch": 32})[0] == 200
    )
    assert request(address, "/rows", {**place, "times.intra_bandwidth": 0.1})[0] == 200


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
    paradl.run({"axes": space | {"layout": {"product": rows}}, "scaling": "strong"}, url)
    explorer = Explorer(url, {}, None)
    cell = {**axes, "strategy": "data+tensor+pipeline", "pe": 16.0, "batch": 64.0, "layout": 3.0}
    answer = explorer.explain(tuple(cell.items()), ())
    expected = paradl.explain(
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


@needs_browser
def test_choices_are_in_the_address_and_back_undoes_them(url, tmp_path):
    """A slider multiplies each machine's own value; without a server the page says so, and dims."""
    with open_browser(tmp_path) as browser, serving(Explorer(url, {}, None)) as address:
        browser.open(address)
        before = browser.read("#answer")
        move = """{const slider = document.querySelector("input[name=peak_flops]");
            slider.value = -0.5;
            slider.dispatchEvent(new Event("change"));}"""
        choose = """{const system = document.querySelector("select[name=system]");
            system.value = "abci";
            system.dispatchEvent(new Event("change"));}"""
        for step in (move, choose):
            browser.evaluate(step)
            browser.wait()
        assert "times.peak_flops=0.3162" in browser.evaluate("location.hash")
        factor = {**PLACE, "times.peak_flops": 0.3162}
        rows = json.loads(request(address, "/rows", factor)[1])["tables"]["answers"]
        assert rows["columns"]["text"]["texts"][0].split(", using")[0] in browser.read("#answer")
        for _ in range(2):
            browser.evaluate(
                "new Promise(done => {onhashchange = done; history.back()}).then(() => 0)"
            )
            browser.wait()
        assert browser.read("#answer") == before
        # A server that ended: old numbers do not pass for those of the new choice.
        browser.evaluate("fetch = () => Promise.reject(new TypeError('no server'))")
        browser.evaluate(choose)
        browser.wait()
        assert "does not answer" in browser.read("#answer")
        assert browser.evaluate("document.querySelectorAll('.waiting').length") > 5


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"token": "guessed"}, 403),
        ({"model": "alexnt"}, 400),
        ({"colour": "red"}, 400),
        ({"times.inter_bandwidth": "nan"}, 400),
        ({"times.no_such": "1"}, 400),
        ({"times.inter_bandwidth": "2", "dataset": "no-such"}, 400),
        ({"times.inter_bandwidth": "-1"}, 400),
    ],
)
def test_bad_requests(changes, status, address):
    got, text = request(address, "/rows", PLACE | changes)
    assert got == status
    assert "Traceback" not in text


def test_another_name_of_this_machine(address):
    """As pages of others would have it, whose name leads here (DNS rebinding)."""
    assert request(address, "/rows", PLACE, host="elsewhere.example")[0] == 403


def test_command(url, cli, monkeypatch):
    """A browser is led to the address that is printed, whose token no argument of a process has;
    Ctrl-C ends the command without a traceback.
    """
    answers: list[Future[tuple[int, str]]] = []
    pages: list[Path] = []

    def open_page(given: str) -> None:
        assert "token" not in given
        page = Path(urlsplit(given).path)
        pages.append(page)
        assert page.stat().st_mode & 0o777 == 0o600
        (address,) = re.findall(r"url=(\S+)\"", page.read_text())
        loop = IOLoop.current()
        answer = threads.submit(request, address, "/", {})
        # What Python calls at Ctrl-C; a test run in the background does not hear the signal itself.
        interrupt = partial(signal.default_int_handler, signal.SIGINT, None)
        answer.add_done_callback(lambda _: loop.add_callback(interrupt))
        answers.append(answer)

    monkeypatch.setattr(webbrowser, "open", open_page)
    with ThreadPoolExecutor() as threads:
        code, out, err = cli("report", url, "--serve")
    IOLoop.current().close(all_fds=True)
    assert [answer.result()[0] for answer in answers] == [200]
    assert (code, out.count("\n")) == (130, 1)
    assert not pages[0].exists()
    assert "Traceback" not in err


def test_a_port_that_is_taken(address, url):
    with pytest.raises(paradl.InputError, match="--port"):
        serve(Explorer(url, {}, None), int(urlsplit(address).port or 0))


@pytest.mark.parametrize("query", [{}, {"pe": 8}, {**PLACE, "strategy": "data", "batch": 32}])
def test_a_part_of_a_configuration_is_not_explained(query, address, capfd):
    """The request is refused with what is missing, and nothing reaches the terminal."""
    status, text = request(address, "/explain", query)
    assert status == 400
    assert ("pe" if "strategy" in query else "strategy") in text
    assert capfd.readouterr().err == ""


def test_an_error_reaches_the_terminal(url, tmp_path, capfd):
    """A store that is damaged while it is explored: one line here and in the browser."""
    shutil.copytree(url, tmp_path / "cube.zarr")
    with serving(Explorer(str(tmp_path / "cube.zarr"), {}, None)) as address:
        for chunk in tmp_path.glob("cube.zarr/*_time/c*"):
            chunk.write_bytes(chunk.read_bytes()[:-3])
        status, _ = request(address, "/details", PLACE)
    assert status == 500
    assert capfd.readouterr().err


def test_a_body_is_not_read(address):
    """Of a request without the token, of 100 MB."""
    parts = urlsplit(address)
    with closing(create_connection((parts.hostname or "", parts.port or 0), timeout=30)) as socket:
        head = f"POST / HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: {10**8}\r\n\r\n"
        socket.sendall(head.encode())
        # The answer comes before any of the body is sent.
        assert socket.recv(100).split()[1] in (b"400", b"403", b"413")


def test_quick_answers_do_not_wait_for_slow_ones(url):
    """A page that was computed is served while another place is."""
    started, ended = Event(), Event()

    class Slow(Explorer):
        def answer(self, what: str, given: Mapping[str, str]) -> str:
            if what == "rows":
                started.set()
                assert ended.wait(60)
            return what

    with ThreadPoolExecutor() as threads, serving(Slow(url, {}, None)) as address:
        slow = threads.submit(request, address, "/rows", {})
        assert started.wait(60)
        assert request(address, "/details", {}) == (200, "details")
        ended.set()
        assert slow.result() == (200, "rows")


def test_answers_are_not_taken_for_other_types(address):
    parts = urlsplit(address)
    with closing(HTTPConnection(parts.netloc, timeout=30)) as connection:
        connection.request("GET", f"/rows?{parts.query}&{urlencode(PLACE)}")
        answer = connection.getresponse()
        answer.read()
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers.get_content_type() == "application/json"
