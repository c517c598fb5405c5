"""An explorer: a report's page, served on this machine, which asks for rows as its reader chooses.

A cube of any size opens at once, because only the place that is shown is read. A parameter that is
no axis can be moved: the kernels then evaluate the place anew.
"""

import secrets
import sys
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, lru_cache
from socket import create_server
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import Application, HTTPError, RequestHandler

from paradl.grids.entries.strategies import Strategy
from paradl.grids.grid import LABELS, Grid
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.units import parse_quantity
from paradl.sweep.cells.selection import Selection
from paradl.sweep.cells.source import Source, open_source, open_space
from paradl.sweep.configurations.row_cases import read_value
from paradl.sweep.errors import NothingFeasibleError, RunError
from paradl.sweep.questions.best.question import rank_strategies
from paradl.sweep.questions.explain import explain_grid
from paradl.sweep.report.contents import add_details, find_opening, list_places, rank_places
from paradl.sweep.report.narrow import narrow_grid
from paradl.sweep.report.page import Live, render_page, write_json
from paradl.sweep.report.report import Report, pack_tables

# Parameters of the machine that a reader may move; those that are axes have selectors.
SLIDERS = (
    "peak_flops",
    "memory_bandwidth",
    "memory_capacity",
    "intra_bandwidth",
    "inter_bandwidth",
)
TIMES = "times."  # before the name of a parameter that was moved: its value is a factor
RECENT = 32  # answers that are kept, so that going back is immediate
THREADS = 4  # answers that are computed at a time; the server listens meanwhile
MOST_HEADER_BYTES = 2**14  # of a request, which has no body
MOST_IDLE = 60.0  # seconds that a connection may wait before its next request

Place = tuple[tuple[str, Any], ...]


class Explorer:
    """The answers of one cube, by place."""

    def __init__(
        self,
        source: Source,
        selection: Selection,
        max_global_batch: int | None,
        command: str = "paradl report --serve",
    ) -> None:
        self.command = command
        self.reader = open_source(source)
        self.selection, self.max_global_batch = selection, max_global_batch
        self.places = list_places(self.reader, selection)
        self.token = secrets.token_urlsafe(16)
        self.threads = ThreadPoolExecutor(THREADS)
        # Of this explorer: a decorated method would share one cache, which keeps all of them alive.
        self.collect = lru_cache(2 * RECENT)(self._collect)

    @cached_property
    def page(self) -> str:
        """The page, with the rows of the winner's place."""
        # Rows of the winner's place come with it, so it is drawn without a second request.
        best = rank_strategies(
            self.reader,
            self.selection,
            max_global_batch=self.max_global_batch,
            why=False,
            intervals=False,
        )
        opening = find_opening(best, "epoch_time")
        place = tuple((name, opening[name]) for name in self.places)
        report = self.collect("details", place, ())
        report = replace(report, selectors=self.places, title="How to train at scale")
        return render_page(report, self.command, Live(self.token, list(self.sliders)))

    @cached_property
    def sliders(self) -> dict[str, dict[str, float]]:
        """List the parameters that may be moved, with the value of each system."""
        space = open_space(self.reader, self.selection)
        cell, names = next(space.list_cells()), space.grid.labels["system"]
        # Values are a system's, whatever the network; every network runs on one PE.
        indices = {names[index[2]]: index for index in space.list_indices()}
        cases = {
            system: space.build_case(index, cell, Strategy("serial"))
            for system, index in indices.items()
        }
        return {
            name: {system: read_value(case, name) for system, case in cases.items()}
            for name in SLIDERS
            if name not in self.places
        }

    def _collect(self, what: str, place: Place, moved: Place) -> Report:
        """Collect the ranking and the curves of a place (`rows`), or all of it (`details`).

        moved: parameters of the machine with other values.
        """
        selection: Selection = {**self.selection, **{name: [value] for name, value in place}}
        reader = self.reader
        if moved:
            reader, selection = open_source(self._move(place, moved)), {}
        if what == "rows":
            return rank_places(reader, selection, self.max_global_batch)
        ranked = self.collect("rows", place, moved)
        return add_details(ranked, reader, selection, self.max_global_batch)

    def explain(self, cell: Place, moved: Place) -> dict[str, object]:
        """Explain one configuration: its bottleneck, and the formula of each term.

        InputError: a label or an axis of it is missing.
        """
        values = self.reader.list_values({name: [value] for name, value in cell})
        if several := [name for name, known in values.items() if len(known) > 1]:
            raise InputError(f"expected one configuration; choose a value of {', '.join(several)}")
        answer = explain_grid(self._move(cell, moved))
        return {"sentence": answer["sentence"], "formulas": answer["formulas"]}

    def _move(self, place: Place, moved: Place) -> Grid:
        """Narrow the design space to a place, or a cell, with other parameters of the machine.

        moved: factors of the values that the place's system has. InputError: a label or a value
        that the cube lacks.
        """
        chosen = dict(place)
        self.reader.locate(chosen)  # narrowing takes any number, also one that the cube lacks
        system = chosen.get("system", self.places["system"][0])
        parameters = {name: factor * self.sliders[name][system] for name, factor in moved}
        return narrow_grid(self.reader.grid, chosen, parameters)

    def read_request(self, given: Mapping[str, str]) -> tuple[Place, Place]:
        """Read a place or a cell, and the factors of moved parameters. InputError: unknown ones."""
        known = {*LABELS, *self.reader.coordinates}
        place, moved = list[tuple[str, Any]](), list[tuple[str, Any]]()
        for name, text in given.items():
            if name.startswith(TIMES):
                parameter = name.removeprefix(TIMES)
                factor = parse_quantity(text, "1", name)
                if parameter not in self.sliders or factor <= 0:
                    raise InputError("expected the factor of a slider, more than 0", where=name)
                moved.append((parameter, factor))
            elif name in known:
                value = text if name in LABELS else parse_quantity(text, "1", name)
                place.append((name, value))
            else:
                raise InputError(f"unknown axis {name!r}")
        return tuple(place), tuple(sorted(moved))

    def answer(self, what: str, given: Mapping[str, str]) -> str:
        """Answer a request with the page, or with JSON: `rows` of a place, all of its `details`, or
        the explanation of a cell. InputError: unknown names or values.
        """
        if not what:
            return self.page
        place, moved = self.read_request(given)
        if what == "explain":
            return write_json(self.explain(place, moved))
        return write_json(pack_tables(self.collect(what, place, moved)))


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
        self.set_header("X-Content-Type-Options", "nosniff")

    async def get(self, what: str) -> None:
        """Answer with the page, rows of a place, all of its rows, or the explanation of a cell."""
        given = {name: self.get_query_argument(name) for name in self.request.query_arguments}
        given.pop("token")
        text, kind = "", "text/plain"
        try:
            # In a thread: others are answered meanwhile.
            text = await IOLoop.current().run_in_executor(
                self.explorer.threads, self.explorer.answer, what, given
            )
            kind = "application/json" if what else "text/html"
        except (InputError, NothingFeasibleError) as error:
            self.set_status(400)
            text = str(error)
        except RunError as error:
            self.set_status(500)
            text = str(error)
            print(f"paradl: {text}", file=sys.stderr)
        self.set_header("Content-Type", f"{kind}; charset=utf-8")
        self.finish(text)

    def log_exception(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """Write errors of ours to the terminal, and no refused requests."""
        if not isinstance(error, HTTPError):
            traceback.print_exception(kind, error, trace)


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
    server = HTTPServer(
        Application(routes, log_function=lambda _: None),
        max_body_size=0,  # Tornado would read a body before `prepare` sees the token
        max_header_size=MOST_HEADER_BYTES,
        idle_connection_timeout=MOST_IDLE,
    )
    socket.setblocking(False)  # which Tornado's loop expects
    server.add_socket(socket)
    url = f"http://127.0.0.1:{socket.getsockname()[1]}/?token={explorer.token}"
    return url, IOLoop.current().start
