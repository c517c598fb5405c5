"""The gallery's commands run and draw its pictures, which are small."""

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="pictures need matplotlib")
from PIL import Image

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "gallery.md").read_text()
COMMANDS = re.findall(r"^\$ paradl (.*)", PAGE, re.M)
PICTURES = re.findall(r"!\[.*\]\(gallery/(.*)\)", PAGE)
MOST_BYTES = 60_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `docs/console.py` makes it: with the page's spec, examples and catalogue."""
    folder = tmp_path_factory.mktemp("gallery")
    for name in ("examples", "grids"):
        (folder / name).symlink_to(ROOT / name)
    spec = re.search(r"```yaml\n(.*?)```", PAGE, re.S)
    assert spec is not None
    (folder / "space.yaml").write_text(spec[1])
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_draws_its_picture(command, folder, cli, monkeypatch):
    monkeypatch.chdir(folder)
    # The best placement of a shorter search is a picture, too.
    quick = command.replace("--effort 5", "--effort 0.2")
    words = shlex.split(quick.partition(" > ")[0])
    assert cli(*words)[0] == 0
    named = [word for word in words if word.endswith(".png")]
    assert all(Path(name).stat().st_size for name in named)
    assert all(name in PICTURES for name in named)


def test_every_picture_has_a_command():
    drawn = [word for text in COMMANDS for word in shlex.split(text) if word.endswith(".png")]
    assert sorted(drawn) == sorted(PICTURES)
    assert sorted(PICTURES) == sorted(path.name for path in (ROOT / "docs/gallery").iterdir())


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_small(name):
    path = ROOT / "docs" / "gallery" / name
    assert path.stat().st_size < MOST_BYTES
    with Image.open(path) as picture:
        assert picture.mode == "P"
