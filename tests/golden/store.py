"""Writes tests/golden/stored/<version> for the version that is installed: ``python
tests/golden/store.py``, once.
"""

from __future__ import annotations

from golden_stored import store

import discreet as dp

if __name__ == "__main__":
    store(dp.__version__)
