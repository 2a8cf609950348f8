#!/usr/bin/env bash
# Installs Apache Flink from its Python packages into a folder of its own: install.sh VERSION FOLDER
# The jars come from apache-flink-libraries, scripts and default conf from the wheel of apache-flink, which is only
# unpacked. Neither may share an environment with the crawler: apache-flink pins an apache-beam of its own.
set -euo pipefail
version=${1:?usage: install.sh VERSION FOLDER}
folder=${2:?usage: install.sh VERSION FOLDER}
python=${PYTHON:-python3}
home=$folder/pyflink

if [[ -f $folder/installed ]]; then
  echo "$home"
  exit 0
fi
mkdir -p "$folder"
"$python" -m venv "$folder/venv" >&2
pip=("$folder/venv/bin/python" -m pip --quiet --disable-pip-version-check)
"${pip[@]}" install 'setuptools<81' wheel >&2
"${pip[@]}" install --no-deps --no-build-isolation --target "$folder" "apache-flink-libraries==$version" >&2
wheel=$(mktemp -d)
trap 'rm -rf "$wheel"' EXIT
# The wheel is for some Python that need not be this one: nothing in it is imported.
for minor in 3.11 3.10 3.9 3.12; do
  if "${pip[@]}" download --no-deps --only-binary :all: --python-version "$minor" --dest "$wheel" \
    "apache-flink==$version" >&2; then
    break
  fi
done
"$python" - "$wheel" "$folder" <<'PYTHON'
import pathlib, sys, zipfile

source, folder = (pathlib.Path(argument) for argument in sys.argv[1:])
with zipfile.ZipFile(next(source.glob("*.whl"))) as wheel:
    for name in wheel.namelist():
        if name.startswith(("pyflink/bin/", "pyflink/conf/")):
            wheel.extract(name, folder)
for script in (folder / "pyflink" / "bin").iterdir():
    script.chmod(0o755)
PYTHON
mkdir -p "$home/log"
touch "$folder/installed"
echo "$home"
