"""Versions of the site stand side by side in site/, each built from its own checkout; the list of
them, which every page's menu reads, and the page that leads to the newest are written here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import discreet as dp

SITE = Path(__file__).parents[2] / "site"
LEADING = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={version}/index.html">
<title>discreet</title>
</head>
<body><p><a href="{version}/index.html">discreet {version}</a></p></body>
</html>
"""
# shown at addresses of any depth, so it leads nowhere by itself and loads nothing
LOST = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<title>Nothing is here - discreet</title></head>
<body style="font-family: sans-serif; margin: 2rem"><main><h1>Nothing is here</h1>
<p>The page may have another name in this version. The search of any other page finds it.</p>
</main></body>
</html>
"""


def here() -> Path:
    """The folder of this checkout's version."""
    return SITE / dp.__version__


def built() -> list[str]:
    """The versions that are there, newest first."""
    names = [path.parent.name for path in SITE.glob("*/index.html")]
    return sorted(names, key=lambda name: [int(n) for n in re.findall(r"\d+", name)], reverse=True)


def write() -> None:
    """The list of versions and the page that leads to the newest."""
    if here().exists():
        (here() / "404.html").write_text(LOST, encoding="utf-8")
    names = built()
    if not names:  # a part of the pages, without the first
        return
    listed = [{"version": name, "title": name, "aliases": []} for name in names]
    listed[0]["aliases"] = ["latest"]
    (SITE / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (SITE / "index.html").write_text(LEADING.format(version=names[0]), encoding="utf-8")
