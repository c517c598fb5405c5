"""Errors lead to their pages of the documentation, whose examples CI runs."""

from pathlib import Path
from typing import get_args

import pytest

from paradl.grids.reading.errors import ErrorPage

DOCS = Path(__file__).parents[3] / "docs"
PAGES = [page for page in get_args(ErrorPage) if page]


def test_all_pages_are_listed():
    assert sorted(path.stem for path in (DOCS / "errors").glob("*.md")) == sorted(PAGES)
    listed = (DOCS / "errors.md").read_text().splitlines()
    assert {f"errors/{page}" for page in PAGES} <= {*listed}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_a_message_that_leads_to_it(page):
    text = (DOCS / "errors" / f"{page}.md").read_text()
    assert f"(docs/errors/{page}.md)\n" in text
    assert "**To fix it**" in text


def test_a_message_leads_to_one_page(cli):
    """None beside the page that a message names itself, nor where there is no more to say."""
    for options, pages in (
        (("--model", "vgg61", "--pe", "8"), 1),  # how to describe a network of one's own
        (("--model", "vgg16", "--dataset", "nowhere", "--pe", "8"), 1),
        ((), 0),
    ):
        code, _, err = cli("best", *options)
        assert (code, err.count("docs/")) == (2, pages)
