"""Local files on their way to an object store: nothing stays behind, and nothing living is removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WRITER = """
import pathlib, sys
from connectors.files.scratch import process_folder
folder = process_folder()
assert process_folder() == folder
(folder / "half.warc.gz").write_bytes(b"x" * 1000)
print(folder, flush=True)
sys.stdin.read()
"""


def writer(temporary: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@pytest.mark.parametrize("killed", [False, True])
def test_what_a_process_leaves_is_removed(tmp_path: Path, killed: bool) -> None:
    first, folder = writer(tmp_path)
    assert (folder / "half.warc.gz").exists()
    assert folder.stat().st_mode & 0o777 == 0o700
    second, living = writer(tmp_path)
    assert folder.exists()
    if killed:
        first.kill()
    first.communicate()
    assert folder.exists() == killed
    third, _ = writer(tmp_path)
    assert not folder.exists()
    assert (living / "half.warc.gz").exists()
    for process in (second, third):
        process.communicate()
    assert [path.name for path in (tmp_path / f"roundcrawl-{os.getuid()}").iterdir()] == [".lock"]
