"""Run a peer's file in the environment that has the peer, and keep what its sections printed:

    .venv-bench-NAME/bin/python tools/site/record_peer.py NAME

The file is docs/coming-from/peers/with_NAME.py (or with_NAME.R, which Rscript runs). It runs in a
folder that has the bundled census as census.csv. Its first line names what it needs:
`# needs: opendp==0.16.0`. Nothing of discreet is imported here: a peer's environment lacks it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from datetime import date
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "coming-from" / "peers"
CENSUS = ROOT / "src" / "discreet" / "bundled" / "census.csv.gz"
SECTION = re.compile(r"^# == (\w+).*\n", re.MULTILINE)
END = "@@ end of a section @@"


def record(name: str) -> None:
    """Run one file and write its recording beside it."""
    path = next(one for one in FOLDER.glob(f"with_{name}.*") if one.suffix in (".py", ".R"))
    text = path.read_text(encoding="utf-8")
    is_python = path.suffix == ".py"
    mark = f'\nprint("{END}")\n' if is_python else f'\ncat("{END}\\n")\n'
    code = SECTION.sub(mark, text) + mark
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "census.csv").write_bytes(gzip.decompress(CENSUS.read_bytes()))
        script = Path(folder) / f"script{path.suffix}"
        script.write_text(code, encoding="utf-8")
        done = subprocess.run(
            [sys.executable if is_python else "Rscript", script.name],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )
    if done.returncode:
        raise SystemExit(f"{name}: it failed, so nothing was recorded\n{done.stderr[-2000:]}")
    printed = [_plain(one) for one in done.stdout.split(END)[1:-1]]
    written = {
        "command": f"python tools/site/record_peer.py {name}",
        "date": date.today().isoformat(),
        "language": f"Python {platform.python_version()}" if is_python else _r_version(),
        "packages": _packages(text) if is_python else {"R": _r_version().split()[-1]},
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "outputs": dict(zip(SECTION.findall(text), printed, strict=True)),
    }
    path.with_suffix(".json").write_text(
        json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def _packages(text: str) -> dict[str, str]:
    needs = re.search(r"^# needs: (.+)$", text, flags=re.MULTILINE)
    names = [re.split(r"[=<>~ ]", one.strip())[0] for one in needs[1].split(",")] if needs else []
    return {name: version(name) for name in names}


def _r_version() -> str:
    done = subprocess.run(
        ["Rscript", "-e", "cat(R.version$major, R.version$minor, sep='.')"],
        capture_output=True,
        text=True,
        check=True,
    )
    return f"R {done.stdout.strip()}"


if __name__ == "__main__":
    for one in sys.argv[1:]:
        record(one)
