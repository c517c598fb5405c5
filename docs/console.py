"""Console blocks of a page, run anew: python docs/console.py [--check] docs/tutorial.md.

A block has lines that begin with `$ `, each followed by what the command prints. They run in a
folder with the files of `docs/files/PAGE`, and the repository's `examples` and `grids`. The page's
YAML block, if any, is its `space.yaml`. Pictures that commands draw replace those of the folder
named after the page, in few colours.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from difflib import unified_diff
from pathlib import Path

from PIL import Image


def run_blocks(text: str, folder: Path) -> str:
    """Return the page with the output of each command as it is now.

    CalledProcessError: a command failed.
    """
    for name in ("examples", "grids"):
        (folder / name).symlink_to(Path(__file__).parents[1] / name)
    spec = re.search(r"```yaml\n(.*?)```", text, re.S)
    if spec is not None:
        (folder / "space.yaml").write_text(spec[1])
    blocks = re.compile(r"(?<=```console\n).*?(?=```)", re.S)
    return blocks.sub(lambda block: "".join(run_commands(block[0], folder)), text)


def run_commands(block: str, folder: Path) -> list[str]:
    """Return the commands of a block, each with what it prints."""
    lines = []
    # The paradl of this Python, whatever else the shell would find.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in re.findall(r"^\$ (.*)", block, re.M):
        done = subprocess.run(
            command,
            shell=True,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            # Unbuffered: messages and answers in the order in which a terminal has them.
            env={**os.environ, "PATH": path, "COLUMNS": "120", "PYTHONUNBUFFERED": "1"},
        )
        printed = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
        lines += [f"{line}\n" for line in (f"$ {command}", *printed)]
    return lines


COLOURS = 64  # a page's pictures stay below 60 kB


def keep_pictures(folder: Path, page: Path) -> None:
    """Keep the pictures of a folder beside the page, as palettes."""
    for picture in sorted(folder.glob("*.png")):
        with Image.open(picture) as drawn:
            small = drawn.convert("RGB").quantize(COLOURS)
        small.save(page.with_suffix("") / picture.name, optimize=True)


def main() -> None:
    """Rewrite pages, or with --check fail where one is out of date."""
    check, pages = "--check" in sys.argv, [Path(name) for name in sys.argv[1:] if name != "--check"]
    for page in pages:
        with tempfile.TemporaryDirectory() as temporary:
            files = page.parent / "files" / page.stem
            if files.is_dir():
                shutil.copytree(files, temporary, dirs_exist_ok=True)
            before = page.read_text()
            after = run_blocks(before, Path(temporary))
            if not check:
                keep_pictures(Path(temporary), page)
        if check:
            sys.stdout.writelines(unified_diff(before.splitlines(True), after.splitlines(True)))
            if after != before:
                sys.exit(f"{page} is out of date: run python docs/console.py {page}")
        else:
            page.write_text(after)


if __name__ == "__main__":
    main()
