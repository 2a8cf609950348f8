"""Writes LIB/beam-runner.jar: what a job server's jar holds that the Flink jars in LIB do not.

Usage: runner_jar.py JOB_SERVER_JAR LIB

A job server's jar carries a Flink and a logging library of its own. In a cluster's lib folder they would stand
before the cluster's.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

LOGGING = re.compile(
    r"org/slf4j/|org/apache/log(4j|ging)/|ch/qos/logback/|META-INF/.*\.(SF|RSA|DSA|EC)$|log4j"
)


def main() -> int:
    """Write the jar beside the others; return the exit code."""
    if len(sys.argv) != 3:
        sys.stderr.write(f"usage: {sys.argv[0]} JOB_SERVER_JAR LIB\n")
        return 2
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    present = {name for jar in sorted(folder.glob("*.jar")) for name in zipfile.ZipFile(jar).namelist()}
    target = folder / "beam-runner.jar"
    part = target.with_suffix(".part")
    written: set[str] = set()
    with zipfile.ZipFile(source) as whole, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as rest:
        for entry in whole.infolist():
            name = entry.filename
            if name in present or name in written or name.endswith("/") or LOGGING.match(name):
                continue
            written.add(name)
            rest.writestr(name, whole.read(entry))
    part.rename(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
