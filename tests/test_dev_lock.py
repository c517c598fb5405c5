"""`dev.lock` has versions and hashes for what tests need, and names no place to get them from.

uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \\
  --no-header --no-annotate --no-emit-index-url -o dev.lock
"""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "dev.lock").read_text()
PIN = re.compile(
    r"^([a-z0-9-]+==[\w.]+(?: ; .+)?) \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", re.M
)


def test_it_holds_versions_and_hashes_alone():
    assert PIN.sub("", LOCK) == ""


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_it_has_an_allowed_version_of_each_requirement(python):
    there = {"python_version": python, "python_full_version": f"{python}.0"}
    pins = [Requirement(text) for text in PIN.findall(LOCK)]
    kept = [pin for pin in pins if pin.marker is None or pin.marker.evaluate(there)]
    versions = {pin.name: str(pin.specifier).removeprefix("==") for pin in kept}
    assert len(versions) == len(kept)
    for text in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]:
        needed = Requirement(text)
        version = versions[canonicalize_name(needed.name)]
        assert needed.specifier.contains(version), f"{text}: {version} is locked"
