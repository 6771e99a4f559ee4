"""Code blocks of a page, run one after the other in a process of its own; what each printed and
drew.

The process is a fork of one that has loaded the library, works in an empty folder, treats warnings
as errors, and draws its bits from a seed: the same page has the same outputs at every build. Such
noise protects nobody, and the data of all pages are made up.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import hashlib
import io
import json
import multiprocessing
import os
import pickle
import random
import re
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "discreet"
CACHE = ROOT / "build" / "docs-outputs"
LEFT_OUT = "<!-- not run -->"
FENCE = re.compile(
    r"^(?P<before>[^\n]*\n\s*)?^(?P<indent>[ ]*)```python(?P<info>[^\n]*)\n"
    r"(?P<code>.*?)^[ ]*```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
# loaded once, before the first fork: none of them starts a thread
LOADED = ("matplotlib.figure", "numba", "pandas", "pyarrow.parquet", "scipy.optimize", "flint")


@dataclass(frozen=True, slots=True)
class Block:
    """A Python block of a page: where its fence ends, its code, and whether it is to be run."""

    end: int
    line: int
    indent: int
    code: str
    wanted: bool
    folded: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as PNG, with the width in which it is shown and what it says in words."""

    png: bytes
    width: int
    words: str


@dataclass(frozen=True, slots=True)
class Output:
    """What a block printed (and the value of its last line), and what it drew."""

    text: str
    picture: Picture | None


class ExampleFailed(RuntimeError):
    """A code block of a page ended with an error."""


def blocks(text: str) -> list[Block]:
    """The Python blocks of a page."""
    found = []
    for match in FENCE.finditer(text):
        indent = len(match["indent"])
        found.append(
            Block(
                end=match.end(),
                line=text[: match.start("code")].count("\n"),
                indent=indent,
                code="\n".join(line[indent:] for line in match["code"].splitlines()),
                wanted=LEFT_OUT not in (match["before"] or ""),
                folded=".folded" in match["info"],
            )
        )
    return found


def outputs_of(pages: Mapping[str, str], workers: int = 2) -> dict[str, list[Output]]:
    """For each page by name, the output of each of its blocks that is to be run."""
    done: dict[str, list[Output]] = {}
    missing: list[str] = []
    for name, text in pages.items():
        stored = _stored(name, text)
        if stored.exists():
            done[name] = pickle.loads(stored.read_bytes())  # written by this module
        else:
            missing.append(name)
    for name, outputs in _run_all({name: pages[name] for name in missing}, workers):
        stored = _stored(name, pages[name])
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_bytes(pickle.dumps(outputs))
        done[name] = outputs
    return done


def _stored(name: str, text: str) -> Path:
    wanted = [[block.line, block.code] for block in blocks(text) if block.wanted]
    key = json.dumps([name, library_digest(), wanted])
    return CACHE / f"{hashlib.sha256(key.encode()).hexdigest()}.pickle"


@functools.cache
def library_digest() -> str:
    """A hash of the library and of what runs the blocks."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted(LIBRARY.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _run_all(pages: Mapping[str, str], workers: int) -> Iterator[tuple[str, list[Output]]]:
    if not pages:
        return
    _load()
    gc.collect()
    gc.freeze()  # what is loaded stays in memory that all pages share
    context = multiprocessing.get_context("fork")
    waiting, running = [*pages.items()], dict[Any, tuple[str, Any, Any]]()
    failed: list[str] = []
    while waiting or running:
        while waiting and len(running) < workers:
            name, text = waiting.pop(0)
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_run_page, args=(name, text, sender))
            process.start()
            sender.close()
            running[receiver] = (name, process, receiver)
        for ready in wait([*running]):
            name, process, receiver = running.pop(ready)
            try:
                answer = receiver.recv()
            except EOFError:
                answer = f"{name}: the process of its blocks died"
            process.join()
            if isinstance(answer, str):
                failed.append(answer)
            else:
                yield name, answer
    if failed:
        raise ExampleFailed("\n\n".join(failed))


def _load() -> None:
    import importlib

    for name in LOADED:
        importlib.import_module(name)
    import discreet

    for name in discreet.__all__:
        getattr(discreet, name)


def _run_page(name: str, text: str, sender: Any) -> None:
    """What happens in the process of a page."""
    seeded(name)
    os.environ["MPLBACKEND"] = "Agg"
    warnings.resetwarnings()
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            sender.send(run_blocks(name, blocks(text)))
        except BaseException:
            sender.send(f"{name}:\n{traceback.format_exc(limit=-4)}")
        os.chdir("/")
    sender.close()


def seeded(name: str) -> None:
    """From here on, what this process takes for the operating system's random bytes is a function
    of a name.
    """
    stream = random.Random(f"discreet documentation/{name}").randbytes
    os.urandom = stream
    random._urandom = stream  # type: ignore[attr-defined]


def run_blocks(name: str, page: list[Block]) -> list[Output]:
    """The blocks in one namespace, as the tests run them."""
    namespace: dict[str, Any] = {"__name__": "__example__"}
    return [_run_block(name, block, namespace) for block in page if block.wanted]


def _run_block(name: str, block: Block, namespace: dict[str, Any]) -> Output:
    tree = ast.parse("\n" * block.line + block.code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, picture = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
            picture = _picture(value)
            if picture is None and value is not None:
                print(repr(value))
    return Output(_plain(printed.getvalue()), picture)


def _plain(text: str) -> str:
    """Printed text without colours and blank ends."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def _picture(value: object) -> Picture | None:
    canvas = getattr(value, "figure", value)
    if not hasattr(canvas, "_repr_png_"):
        return None
    png, size = canvas._repr_png_()
    titles = (axes.get_title(loc="left") for axes in canvas.axes)
    words = ". ".join(" ".join(title.split()) for title in titles if title)
    return Picture(png, size["width"], words or "picture")
