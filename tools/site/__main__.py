"""Build the site into site/VERSION: python -m tools.site [--only PREFIX] [--workers N]"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from tools.site import checks, staging, versions


def main() -> int:
    """Stage all pages, build them strictly, and check what was built."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--only", default="", help="run and build only pages that begin so")
    asked.add_argument("--workers", type=int, default=2, help="pages whose code runs at once")
    given = asked.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets are printed in the same order every time
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tools.site", *sys.argv[1:]])
    start = time.perf_counter()
    staging.stage(given.only, given.workers)
    print(f"staged in {time.perf_counter() - start:.0f} s", flush=True)
    strict = [] if given.only else ["--strict"]
    config = str(staging.STAGED / "mkdocs.yml")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", *strict, "--config-file", config],
        check=False,
        cwd=staging.ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"},
    )
    if done.returncode:
        return done.returncode
    versions.write()
    if not given.only:
        found = checks.faults(versions.here())
        if found:
            print("\n".join(found), file=sys.stderr)
            return 1
    print(f"built in {time.perf_counter() - start:.0f} s: {versions.here() / 'index.html'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
