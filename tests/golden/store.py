"""Writes tests/golden/stored/<version> for this version, once: ``python tests/golden/store.py``."""

from __future__ import annotations

from golden_stored import store

import discreet as dp

if __name__ == "__main__":
    store(dp.__version__)
