"""An explorer: a report's page, served on this machine, which asks for rows as its reader chooses.

A cube of any size opens at once, because only the place that is shown is read. A parameter that is
no axis can be moved: the kernels then evaluate the place anew.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from socket import create_server
from typing import Any

import numpy as np
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import Application, HTTPError, RequestHandler

from grids.entries.strategies import Strategy
from grids.grid import LABELS, Grid
from grids.reading.errors import InputError
from sweep.cases.row_cases import read_value
from sweep.cells.reader import Reader
from sweep.cells.selection import Selection
from sweep.cells.source import Source, open_source, open_space
from sweep.errors import NothingFeasibleError
from sweep.questions.explain import explain_grid
from sweep.report.contents import add_details, list_places, rank_places
from sweep.report.narrow import narrow_grid
from sweep.report.page import Live, render_page, write_json
from sweep.report.tables import Report, pack_tables

# Parameters of the machine that a reader may move; those that are axes have selectors.
SLIDERS = (
    "peak_flops",
    "memory_bandwidth",
    "memory_capacity",
    "intra_bandwidth",
    "inter_bandwidth",
)
SET = "set."  # before the name of a parameter that was moved
RECENT = 32  # answers that are kept, so that going back is immediate

Place = tuple[tuple[str, Any], ...]


class Explorer:
    """The answers of one cube, by place."""

    def __init__(
        self,
        source: Source,
        selection: Selection,
        max_global_batch: int | None,
        command: str = "paradl explore",
    ) -> None:
        self.command = command
        self.reader = open_source(source)
        self.selection, self.max_global_batch = selection, max_global_batch
        self.places = list_places(self.reader, selection)
        self.token = secrets.token_urlsafe(16)
        # Of this explorer: a decorated method would share one cache, which keeps all of them alive.
        self.rank = lru_cache(RECENT)(self._rank)
        self.add_details = lru_cache(RECENT)(self._add_details)

    @cached_property
    def page(self) -> str:
        """The page, with the rows of the first place."""
        # Rows of the first place come with the page, which is then drawn without a second request.
        first = {name: values[0] for name, values in self.places.items()}
        report = self.add_details(tuple(first.items()), ())
        report = replace(report, selectors=self.places, title="How to train at scale")
        return render_page(report, self.command, Live(self.token, self._list_sliders()))

    def _list_sliders(self) -> dict[str, dict[str, float]]:
        """List the parameters that may be moved, with the value of each system."""
        free = [name for name in SLIDERS if name not in self.places]
        values: dict[str, dict[str, float]] = {name: {} for name in free}
        space, done = open_space(self.reader, self.selection), set[int]()
        # Values are a system's, whatever the network; every network runs on one PE.
        for index in space.list_indices():
            position = index[2]
            if position not in done:
                done.add(position)
                case = space.build_case(index, next(space.list_cells()), Strategy("serial"))
                for name in free:
                    values[name][space.grid.labels["system"][position]] = read_value(case, name)
        return values

    def _open(self, place: Place, moved: Place) -> tuple[Reader, Selection]:
        """Open a place; moved: parameters of the machine with other values."""
        if moved:
            return open_source(self._move(place, moved)), {}
        return self.reader, {**self.selection, **{name: [value] for name, value in place}}

    def _rank(self, place: Place, moved: Place) -> Report:
        """Collect the ranking and the curves of a place."""
        return rank_places(*self._open(place, moved), self.max_global_batch)

    def _add_details(self, place: Place, moved: Place) -> Report:
        """Collect all rows of a place."""
        reader, selection = self._open(place, moved)
        return add_details(self.rank(place, moved), reader, selection, self.max_global_batch)

    def explain(self, cell: Place, moved: Place) -> dict[str, Any]:
        """Explain one configuration: its bottleneck, and the formula of each term."""
        answer = explain_grid(self._move(cell, moved))
        return {"sentence": answer["sentence"], "formulas": answer["formulas"]}

    def _move(self, place: Place, moved: Place) -> Grid:
        """Narrow the design space to a place, or a cell, with other parameters of the machine.

        InputError: a label or a value that the cube lacks.
        """
        chosen = {name: [value] for name, value in place}
        # Narrowing takes any number; only what the cube has may be asked for.
        self.reader.locate(chosen)
        return narrow_grid(self.reader.grid, chosen, dict(moved))

    def read_place(self, given: Mapping[str, str]) -> Place:
        """Read the labels and values of a request. InputError: an unknown one."""
        known = {*LABELS, *self.reader.coordinates}
        unknown = [name for name in given if name not in known]
        if unknown:
            raise InputError(f"unknown axis {unknown[0]!r}")
        return tuple(
            (name, value if name in LABELS else read_number(value)) for name, value in given.items()
        )


def read_number(text: str) -> float:
    """Read a finite number. InputError: it is none."""
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InputError(f"expected a number, got {text[:40]!r}")
    return value


def read_change(name: str, text: str) -> tuple[str, float]:
    """Read a parameter of the machine that was moved. InputError: no such slider, or no value."""
    value = read_number(text)
    if name not in SLIDERS:
        raise InputError.unknown("slider", name, SLIDERS)
    if value <= 0:
        raise InputError(f"expected more than 0, got {value:g}", where=name)
    return name, value


class Page(RequestHandler):
    """Answers requests that carry the token, from pages of this server alone."""

    def initialize(self, explorer: Explorer) -> None:
        """Keep the explorer."""
        self.explorer = explorer

    def prepare(self) -> None:
        """Refuse requests without the token, and other names for this machine (DNS rebinding)."""
        host = self.request.host_name
        # As bytes: texts with other letters than ASCII cannot be compared in constant time.
        token = self.get_query_argument("token", "")
        # Another site's name may be made to point here, and its scripts would then read the answer.
        if host not in ("127.0.0.1", "localhost") or not secrets.compare_digest(
            token.encode(), self.explorer.token.encode()
        ):
            raise HTTPError(403)
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "no-referrer")

    def get(self, what: str) -> None:
        """Answer with the page, rows of a place, all of its rows, or the explanation of a cell."""
        if not what:
            self.finish(self.explorer.page)
            return
        given = {name: self.get_query_argument(name) for name in self.request.query_arguments}
        moved = {name: given.pop(name) for name in list(given) if name.startswith(SET)}
        given.pop("token")
        try:
            place = self.explorer.read_place(given)
            changes = tuple(read_change(name[len(SET) :], text) for name, text in moved.items())
            answer: dict[str, Any] = {
                "rows": lambda *asked: pack_tables(self.explorer.rank(*asked)),
                "details": lambda *asked: pack_tables(self.explorer.add_details(*asked)),
                "explain": self.explorer.explain,
            }[what](place, changes)
        except (InputError, NothingFeasibleError) as error:
            self.set_status(400)
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(str(error))
            return
        self.set_header("Content-Type", "application/json")
        self.finish(write_json(answer))

    def log_exception(self, *_: object) -> None:
        """Leave refused requests out of the terminal."""


def serve(explorer: Explorer, port: int) -> tuple[str, Callable[[], None]]:
    """Listen on 127.0.0.1; return the page's address, and a function that serves until Ctrl-C.

    InputError: the port is taken.
    """
    try:
        socket = create_server(("127.0.0.1", port))
    except OSError as error:
        raise InputError(
            f"port {port} cannot be used: {error.strerror}", where="--port", advice="choose another"
        ) from None
    routes = [(r"/(|rows|details|explain)", Page, {"explorer": explorer})]
    # No request is logged: its address has the token.
    server = HTTPServer(Application(routes, log_function=lambda _: None))
    socket.setblocking(False)  # which Tornado's loop expects
    server.add_socket(socket)
    url = f"http://127.0.0.1:{socket.getsockname()[1]}/?token={explorer.token}"
    return url, IOLoop.current().start
