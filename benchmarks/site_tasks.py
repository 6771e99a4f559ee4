"""Ten tasks, tried from the built site alone, in a browser, as somebody new would try them.

    make docs && make bench NAME=site_tasks

The tasks are those of docs/coming-from. For each the front page is opened, words are typed into the
search field that somebody would type who does not know the library, and results are opened from the
first on until a page shows the task: an example with the call and what it prints. The code of that
page is copied out of the browser down to this call, and run in an empty folder. What counts is how
many pages were opened after the front page, and whether the code ran.

Needs a Chromium of the system, and `pip install playwright` (no part of the project's environment).
The last line has the largest number of pages opened, the tasks found and those done.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.site import reading, versions

import stored

MOST_OPENED = 4  # results that are opened before a task counts as not found
TASKS = (
    ("a mean with an interval", "average income", "dp.mean("),
    ("means by group", "mean by group", "dp.table("),
    ("a share with an interval", "proportion confidence interval", "dp.proportion("),
    ("a median and quantiles", "median", "dp.quantiles( dp.median("),
    ("counts by bins", "histogram", "dp.histogram("),
    ("two groups, one number", "t-test", "dp.compare_means("),
    ("two groups, yes or no", "A/B test", "dp.compare("),
    ("how columns go together", "correlation matrix", "dp.correlation("),
    ("a regression", "linear regression", "dp.ols("),
    ("a yes or no explained", "logistic regression", "dp.logistic("),
)
# the code blocks of a page, in order, and whether something printed stands below
BLOCKS = """() => [...document.querySelectorAll("article .highlight")].map(block => ({
    shown: block.classList.contains("output"),
    code: (block.querySelector("code") || block).innerText,
}))"""


@dataclass(frozen=True, slots=True)
class Tried:
    """A task, what was typed, the page that showed it, how many were opened, whether it ran."""

    task: str
    words: str
    page: str
    opened: int
    done: bool


def tried(tab: Any, address: str, task: str, words: str, calls: str) -> Tried:
    """One task, from the front page on."""
    for place in range(MOST_OPENED):
        tab.goto(f"{address}/index.html", wait_until="load")
        tab.keyboard.press("/")
        tab.wait_for_selector(".md-search__input:focus")
        tab.keyboard.type(words)
        tab.wait_for_selector(".md-search-result__item a", timeout=60_000)
        tab.wait_for_timeout(1500)
        found = tab.locator(".md-search-result__item > a").nth(place)
        found.click()
        tab.wait_for_selector("article h1")
        tab.wait_for_timeout(300)
        code = shown(tab.evaluate(BLOCKS), calls)
        page = tab.url.removeprefix(address).partition("?")[0].lstrip("/")
        print(f"    {task}: opened {page}", flush=True)
        if code:
            return Tried(task, words, page, place + 1, runs(code))
    return Tried(task, words, "", MOST_OPENED, False)


def shown(blocks: list[dict[str, Any]], calls: str) -> str:
    """The code of a page down to the first block with one of the calls and an output."""
    code: list[str] = []
    for block, after in itertools.pairwise([*blocks, {"shown": False}]):
        if block["shown"]:
            continue
        if not parses(block["code"]):  # a signature, or a line for a shell
            continue
        code.append(block["code"])
        if any(one in block["code"] for one in calls.split()) and after["shown"]:
            return "\n".join(code)
    return ""


def parses(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def runs(code: str) -> bool:
    """Whether the code ends well in an empty folder, and prints."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
        )
    if done.returncode or not done.stdout:
        print(done.stderr[-1000:], file=sys.stderr)
    return done.returncode == 0 and bool(done.stdout)


@contextmanager
def browser(path: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium.new_page(viewport={"width": 1400, "height": 1000})
        chromium.close()


def store(found: list[Tried]) -> None:
    stored.table(
        "site_tasks",
        about="house",
        title="Ten tasks, tried from this site alone",
        says="Words typed into the search field of the front page by somebody who does not know "
        "the library; results opened from the first on until a page showed the task with what it "
        "prints; the code copied from there and run in an empty folder.",
        columns=[
            stored.column("task"),
            stored.column("words", "typed"),
            stored.column("page", "found on"),
            stored.column("opened", "pages opened", target="≤ 2"),
            stored.column("done", "ran"),
        ],
        rows=[
            {
                "task": one.task,
                "words": one.words,
                "page": one.page or "not found",
                "opened": one.opened,
                "done": "yes" if one.done else "no",
            }
            for one in found
        ],
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--browser", default=reading.BROWSER)
    parser.add_argument("--site", type=Path, default=versions.here(), help="the built site")
    stored.option(parser)
    options = parser.parse_args()
    found = []
    with browser(options.browser) as tab, reading.served(options.site) as address:
        for task, words, calls in TASKS:
            found.append(tried(tab, address, task, words, calls))
            print(found[-1], flush=True)
    if options.store:
        store(found)
    most = max(one.opened for one in found)
    done = sum(one.done for one in found)
    print(f"most_opened={most} found={sum(bool(one.page) for one in found)} done={done}")
    return 0 if most <= 2 and done == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
