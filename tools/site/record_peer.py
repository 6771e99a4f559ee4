"""Run a peer's file in the environment that has the peer, and keep what it printed:

    .venv-bench-NAME/bin/python tools/site/record_peer.py FILE-NAME…

Files are docs/coming-from/peers/NAME.py; each runs in a process of its own, in an empty folder.
Their first lines name what they need: `# needs: opendp==0.16.0`.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import subprocess
import sys
import tempfile
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "coming-from" / "peers"


def record(name: str) -> None:
    """Run one file and write its recording beside it."""
    path = FOLDER / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    needs = re.search(r"^# needs: (.+)$", text, flags=re.MULTILINE)
    names = [re.split(r"[=<>~ ]", one.strip())[0] for one in needs[1].split(",")] if needs else []
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(path)], cwd=folder, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"{name}: it failed, so nothing was recorded\n{done.stderr[-2000:]}")
    written = {
        "command": f"python tools/site/record_peer.py {name}",
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "packages": {one: _version(one) for one in names},
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "output": "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip("\n"),
    }
    path.with_suffix(".json").write_text(
        json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise SystemExit(f"{package} is not in this environment: nothing was recorded") from None


if __name__ == "__main__":
    for one in sys.argv[1:]:
        record(one)
