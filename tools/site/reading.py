"""The built pages read in a browser, on a phone and on a desk: python -m tools.site.reading

No page may scroll sideways, write an error to the console, ask another host for anything, or have a
serious fault for those who read by ear or keyboard (axe). Needs a Chromium of the system and, in
the environment, what is no part of the project's own: `pip install playwright
axe-playwright-python`.

    --only PREFIX     pages whose path begins so
    --each N          at most N pages of a folder
    --shots FOLDER    a picture of the first page of each folder, at both widths and in both colours
"""

from __future__ import annotations

import argparse
import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.site import versions

WIDTHS = {"phone": (360, 780), "desk": (1400, 1000)}
BROWSER = "/usr/bin/chromium"
SERIOUS = ("serious", "critical")
COLOURS = ("color-contrast", "link-in-text-block")  # all that axe says of a page again in the dark


def main() -> int:
    """Read all pages; the number of faults says how it ended."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--only", default="")
    asked.add_argument("--each", type=int, default=None)
    asked.add_argument("--shots", type=Path, default=None)
    asked.add_argument("--browser", default=BROWSER)
    given = asked.parse_args()
    root = versions.here()
    pages = [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*.html"))
        if str(path.relative_to(root)).startswith(given.only)
        and not str(path.relative_to(root)).startswith("source/")
    ]
    if given.each is not None:
        pages = [*_some(pages, given.each)]
    found = 0
    for fault in _faults(pages, root, given.browser, given.shots):
        found += 1
        print(fault, flush=True)
    print(f"pages={len(pages)} widths={len(WIDTHS)} faults={found}")
    return 1 if found else 0


def _some(pages: list[str], most: int) -> Iterator[str]:
    seen: dict[str, int] = {}
    for name in pages:
        folder = name.rpartition("/")[0]
        seen[folder] = seen.get(folder, 0) + 1
        if seen[folder] <= most:
            yield name


def _faults(pages: list[str], root: Path, browser: str, shots: Path | None) -> Iterator[str]:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    axe = Axe()
    with sync_playwright() as play, served(root) as address:
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for kind, (width, height) in WIDTHS.items():
            for scheme in ("light", "dark"):
                context = chromium.new_context(
                    viewport={"width": width, "height": height}, color_scheme=scheme
                )
                tab = context.new_page()
                heard: list[str] = []
                tab.on("console", lambda one, heard=heard: _hear(one, heard))
                tab.on("pageerror", lambda one, heard=heard: heard.append(f"error: {one}"))
                tab.on(
                    "request", lambda one, heard=heard, here=address: _elsewhere(one, here, heard)
                )
                seen: set[str] = set()
                rules = COLOURS if scheme == "dark" else ()
                for name in pages:
                    heard.clear()
                    tab.goto(f"{address}/{name}", wait_until="load")
                    yield from (f"{kind} {scheme} {name}: {one}" for one in _look(tab, axe, rules))
                    yield from (f"{kind} {scheme} {name}: {one}" for one in heard)
                    folder = name.partition("/")[0]
                    if shots is not None and folder not in seen:
                        seen.add(folder)
                        shots.mkdir(parents=True, exist_ok=True)
                        tab.screenshot(
                            path=shots / f"{folder.removesuffix('.html')}-{kind}-{scheme}.png"
                        )
                context.close()
        chromium.close()


def _look(tab: Any, axe: Any, rules: tuple[str, ...]) -> Iterator[str]:
    wide = tab.evaluate(
        "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    if wide[0] > wide[1]:
        yield f"scrolls sideways: {wide[0]} in {wide[1]} px"
    asked: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        asked["runOnly"] = {"type": "rule", "values": [*rules]}
    for fault in axe.run(tab, options=asked).response["violations"]:
        if fault["impact"] in SERIOUS:
            places = ", ".join(str(node["target"][0]) for node in fault["nodes"][:3])
            yield f"{fault['id']} ({fault['impact']}): {places}"


def _hear(message: Any, heard: list[str]) -> None:
    if message.type in ("error", "warning"):
        heard.append(f"console: {message.text}")


def _elsewhere(request: Any, here: str, heard: list[str]) -> None:
    host = here.rpartition("/")[0]  # the list of versions stands beside the version
    if not request.url.startswith((host, "data:", "blob:")):
        heard.append(f"asks {request.url}")


class served:  # noqa: N801
    """The folder on a port of this machine, as long as it is open."""

    def __init__(self, root: Path) -> None:
        handler = functools.partial(_Silent, directory=str(root.parent))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/{root.name}"

    def __enter__(self) -> str:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self.address

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written of what was asked for."""


if __name__ == "__main__":
    raise SystemExit(main())
