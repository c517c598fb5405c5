"""An explorer: a report's page, served on this machine, which asks for rows as its reader chooses.

A cube of any size opens at once, because only the place that is shown is read. A parameter that is
no axis can be moved: the kernels then evaluate the place anew.
"""

import copy
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from socket import create_server
from typing import Any

import numpy as np
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import Application, HTTPError, RequestHandler

from grids.entries.parameters import PARAMETERS
from grids.entries.strategies import Strategy
from grids.grid import LABELS, Grid
from grids.reading.errors import InputError
from sweep.cases.case_numbers import read_value
from sweep.cells.selection import Selection, locate_label
from sweep.cells.source import Source, open_source
from sweep.cells.space import open_space
from sweep.errors import NothingFeasibleError
from sweep.questions.explain import explain_grid
from sweep.report.contents import Report, collect_report, list_places
from sweep.report.page import Live, pack_tables, render_page, write_json

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

    def __init__(self, source: Source, selection: Selection, max_global_batch: int | None) -> None:
        self.reader = open_source(source)
        self.selection, self.max_global_batch = selection, max_global_batch
        self.places = list_places(self.reader, selection)
        self.token = secrets.token_urlsafe(16)
        self.collect = lru_cache(RECENT)(self._collect)

    def render(self) -> str:
        """Render the page, with the rows of the first place that has any."""
        first = {name: values[0] for name, values in self.places.items()}
        report = self.collect(tuple(first.items()), ())
        report = replace(report, selectors=self.places, title="How to train at scale")
        return render_page(report, "paradl explore", Live(self.token, self._list_sliders()))

    def _list_sliders(self) -> dict[str, dict[str, float]]:
        """List the parameters that may be moved, with the value of each system."""
        free = [name for name in SLIDERS if name not in self.places]
        values: dict[str, dict[str, float]] = {name: {} for name in free}
        space, done = open_space(self.reader, self.selection), set[int]()
        for index in space.list_indices():
            position = index[2]
            if position not in done:
                done.add(position)
                case = space.build_case(index, next(space.list_cells()), Strategy("serial"))
                for name in free:
                    values[name][space.grid.labels["system"][position]] = read_value(case, name)
        return values

    def _collect(self, place: Place, moved: Place) -> Report:
        """Collect the rows of a place; moved: parameters of the machine with other values."""
        chosen = {name: [value] for name, value in place}
        source = self._move(place, moved) if moved else self.reader
        selection = {} if moved else {**self.selection, **chosen}
        return collect_report(source, selection, self.max_global_batch)

    def explain(self, cell: Place, moved: Place) -> dict[str, Any]:
        """Explain one configuration: its bottleneck, and the formula of each term."""
        answer = explain_grid(self._move(cell, moved))
        return {"sentence": answer["sentence"], "formulas": answer["formulas"]}

    def _move(self, place: Place, moved: Place) -> Grid:
        """Build the design space of a place, or a cell, with other parameters of the machine."""
        grid = self.reader.grid
        definition: dict[str, Any] = copy.deepcopy(grid.definition())
        for name, value in place:
            if name in LABELS:
                definition["axes"][name] = [
                    definition["axes"][name][locate_label(grid, name, value)]
                ]
            else:
                whole = PARAMETERS[name].whole if name in PARAMETERS else False
                definition["axes"][name] = [int(value) if whole else value]
        definition["parameters"] = {**(definition.get("parameters") or {}), **dict(moved)}
        return Grid.from_definition(definition)

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


class Page(RequestHandler):
    """Answers requests that carry the token, from pages of this server alone."""

    def initialize(self, explorer: Explorer) -> None:
        """Keep the explorer."""
        self.explorer = explorer

    def prepare(self) -> None:
        """Refuse requests without the token, and other names for this machine (DNS rebinding)."""
        host = self.request.host_name
        token = self.get_query_argument("token", "")
        if host not in ("127.0.0.1", "localhost") or not secrets.compare_digest(
            token.encode(), self.explorer.token.encode()
        ):
            raise HTTPError(403)
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "no-referrer")

    def get(self, what: str) -> None:
        """Answer with the page, the rows of a place, or the explanation of a cell."""
        if not what:
            self.finish(self.explorer.render())
            return
        given = {name: self.get_query_argument(name) for name in self.request.query_arguments}
        moved = {name: given.pop(name) for name in list(given) if name.startswith(SET)}
        given.pop("token")
        try:
            place = self.explorer.read_place(given)
            changes = tuple((name[len(SET) :], read_number(text)) for name, text in moved.items())
            answer = (
                pack_tables(self.explorer.collect(place, changes))
                if what == "rows"
                else self.explorer.explain(place, changes)
            )
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
    """Listen on 127.0.0.1: the address of the page, and what answers until it is interrupted.

    InputError: the port is taken.
    """
    try:
        socket = create_server(("127.0.0.1", port))
    except OSError as error:
        raise InputError(
            f"port {port} cannot be used: {error.strerror}", where="--port", advice="choose another"
        ) from None
    routes = [(r"/(|rows|explain)", Page, {"explorer": explorer})]
    # No request is logged: its address has the token.
    server = HTTPServer(Application(routes, log_function=lambda _: None))
    socket.setblocking(False)
    server.add_socket(socket)
    url = f"http://127.0.0.1:{socket.getsockname()[1]}/?token={explorer.token}"
    return url, IOLoop.current().start
