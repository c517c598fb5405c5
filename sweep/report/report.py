"""Reports on cubes: their rows collected, and written as a page."""

from pathlib import Path

from paradl.grids.reading.textfile import PAGES, expect_ending, expect_folder
from paradl.sweep.answers.frames import name_arguments
from paradl.sweep.answers.objectives import Goal, Price
from paradl.sweep.cells.selection import Selection, join_selection
from paradl.sweep.cells.source import Source, open_source
from paradl.sweep.report import expect_report_libraries
from paradl.sweep.report.asked import Asked
from paradl.sweep.report.tables import Report


def collect_report(
    source: Source,
    selection: Selection | None = None,
    max_global_batch: int | None = None,
    objective: Goal = "epoch_time",
    price: Price = None,
    asked: Asked | None = None,
) -> Report:
    """Collect the rows of a report on a cube, or on a slice of one; of at most 24 places.

    objective, price: as for `best`. asked: another question, which then leads. InputError: an
    unknown axis or value. NothingFeasibleError: no configuration is feasible.
    """
    from paradl.sweep.report.contents import add_details, rank_places  # late: they need matplotlib

    reader = open_source(source)
    report = rank_places(reader, selection, max_global_batch, objective, price, asked)
    return add_details(report, reader, selection, max_global_batch)


@name_arguments
def write_report(
    source: Source,
    path: str | Path,
    selection: Selection | None = None,
    *,
    objective: Goal = "epoch_time",
    price: Price = None,
    max_global_batch: int | None = None,
    **axes: object,
) -> None:
    """Write a report on a cube, or on a slice of one, as one HTML file that needs no network.

    source: a store, a Dataset of one, or a grid. objective, price, max_global_batch: as for `best`.
    InputError: an unknown axis or value, or a path that cannot be written. NothingFeasibleError:
    no configuration is feasible, and nothing is written. RunError: the extra `report` is missing.

    selection, axes: values to select, as in `{"pe": 64}` or `pe=64`.

    >>> import paradl
    >>> from pathlib import Path
    >>> space = {"dataset": "imagenet-226", "system": "abci", "pe": [1, 8, 64], "batch": 32}
    >>> ds = paradl.compute_space("alexnet", **space)
    >>> paradl.write_report(ds, "report.html")
    >>> "data on 64 PEs of abci" in Path("report.html").read_text()
    True
    """
    expect_report_libraries()
    from paradl.sweep.report.page import write_page  # late: it needs altair

    selection = join_selection(selection, axes)
    expect_ending(Path(path), PAGES)
    expect_folder(Path(path))  # before the rows are collected
    report = collect_report(source, selection, max_global_batch, objective, price)
    settings = {"objective": objective, "price": price, "max_global_batch": max_global_batch}
    given = {"selection": selection, **settings}
    # The page states the call that writes it again, without defaults.
    usual = (None, "epoch_time")
    words = [f"{name}={value!r}" for name, value in given.items() if value not in usual]
    name = repr(str(source)) if isinstance(source, str | Path) else "cube"
    call = ", ".join([name, repr(str(path)), *words])
    write_page(report, Path(path), f"paradl.write_report({call})")
