"""A digest of sources changes with what they compute, and with nothing else."""

from pathlib import Path

import pytest

from paradl.kernels.source_digest import digest_sources

SOURCE = '''"""Times."""

SPEED = 2.0  # [items/s]


class Law:
    """A law."""

    def time(self, items: float) -> float:
        """Return the time."""
        return items / SPEED + abs(items, )
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "laws"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "inner" / "law.py").write_text(SOURCE)
    return folder


def edit(package: Path, old: str, new: str) -> None:
    text = SOURCE.replace(old, new)
    assert text != SOURCE
    (package / "inner" / "law.py").write_text(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# [items/s]", "# [items/s] measured"),
        ("  # [items/s]", ""),
        ('"""Times."""', '"""Times of items."""'),
        ('"""A law."""\n', ""),
        ('"""Return the time."""', '"""Return the time [s]."""'),
        ("\n\n\nclass", "\n\nclass"),
        ("SPEED + abs(items, )", "(SPEED) + abs(\n            items\n        )"),
        ("2.0", "2."),
    ],
)
@pytest.mark.parametrize("kept", [False, True])
def test_words_and_layout_do_not_count(kept: bool, old: str, new: str, package: Path) -> None:
    place = package.with_name("digests") if kept else None
    before = digest_sources([package], place)
    edit(package, old, new)
    assert digest_sources([package], place) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2.0", "2.5"),
        ("2.0", "2"),  # divides integers otherwise
        ("items / SPEED", "items * SPEED"),
        ("items / SPEED + abs(items, )", "abs(items) + items / SPEED"),
        ("def time", "def duration"),
        ('"""Return the time."""', 'items = "items"'),
        ("items: float)", "items: float = 1)"),
    ],
)
@pytest.mark.parametrize("kept", [False, True])
def test_what_computes_counts(kept: bool, old: str, new: str, package: Path) -> None:
    place = package.with_name("digests") if kept else None
    before = digest_sources([package], place)
    edit(package, old, new)
    assert digest_sources([package], place) != before


def test_files_count_by_their_names(package: Path) -> None:
    before = digest_sources([package], None)
    (package / "inner" / "law.py").rename(package / "law.py")
    assert digest_sources([package], None) != before


def test_a_kept_digest_is_read(package: Path) -> None:
    kept = package.with_name("digests")
    first = digest_sources([package], kept)
    (file,) = kept.iterdir()
    before = file.stat().st_mtime_ns
    assert digest_sources([package], kept) == first == digest_sources([package], None)
    assert file.stat().st_mtime_ns == before
