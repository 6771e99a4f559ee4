"""What tasks do, over frames in this process: memory's integers, however rows are parted."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pytest
from frames import engine_over

import discreet as dp
from discreet.schema import Schema
from discreet.testing import seeded_session
from discreet.testing.engines import check_engine
from discreet.testing.odd_tables import odd_tables

TABLES = {odd.name: odd for odd in odd_tables(60)}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["one giant unit", "a model", *sorted(set(TABLES) - {"a model", "one giant unit"})])
def test_conformance(name):
    found = check_engine(functools.partial(engine_over, batch_rows=7), tables=[TABLES[name]])
    assert found.passed, str(found)
