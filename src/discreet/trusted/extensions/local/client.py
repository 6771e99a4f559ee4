"""What ships in an app: one value is randomised on the device, and only the report leaves it.

    from discreet import client

    # public, the same for everyone
    spec = client.RandomizedResponse(client.Category(["red", "green", "blue"]), epsilon=2)
    text = client.report(spec, "green")  # send this

It needs numpy (arrays), cryptography (AES for random bits) and python-flint (exact probabilities),
and of this package what it declares (schema), specifies (additive noise and local specs) and draws
(noise): no other mechanism, no session, no ledger, no engine, no scipy; a test holds it to that
list of modules. The server side is `discreet.local`.

A report is one JSON object of three fields: ``discreet`` (the format and its version), ``spec``
(the id of the spec) and ``answer``. It holds nothing else of the device: no value, no time,
no name. Whatever the value is, a report is made, of the same form: what does not fit is read by the
column's rule (`discreet.schema`), so that no error tells anything.

Every further report of the same person costs again: the guarantees of several reports add up
(`discreet.compose`). Devices that answer the rounds of a gradient descent (`LocalGradients`) count
their reports themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import plain
from discreet.errors import devices
from discreet.schema import Boolean, Category, Integer, Real
from discreet.specs.mechanisms.gradient_requests import GradientRequest
from discreet.specs.mechanisms.local import (
    GaussianResponse,
    HadamardResponse,
    LaplaceResponse,
    LocalSpec,
    OneBitResponse,
    RandomizedResponse,
    TwoCoinResponse,
    UnaryResponse,
    checked_spec,
    spec_from_dict,
)
from discreet.trusted.extensions.local.draw import randomize
from discreet.trusted.extensions.local.gradients import LocalGradients
from discreet.trusted.extensions.local.values import (
    code_of,
    codes_of,
    place_of,
    places_of,
    plain_array,
)
from discreet.trusted.noise.source import Source, secure_source

REPORT_FORMAT = "report/1"
_CHUNK = 1 << 18  # values read at a time
_MEASURED = (OneBitResponse, LaplaceResponse, GaussianResponse)

__all__ = [
    "Boolean",
    "Category",
    "GaussianResponse",
    "GradientRequest",
    "HadamardResponse",
    "Integer",
    "LaplaceResponse",
    "LocalGradients",
    "OneBitResponse",
    "RandomizedResponse",
    "Real",
    "TwoCoinResponse",
    "UnaryResponse",
    "read_spec",
    "report",
    "reports",
]


def report(spec: LocalSpec, value: Any) -> str:
    """The randomised report of one value, as JSON text.

    Theorem.  The text is a function of the spec and of a draw with the spec's exact law:
              one report has the spec's guarantee.
    Proof.    The value is read into one code by a total rule; `randomize` draws;
              nothing else of the value is used.
    Checked.  tests/local/test_local_client.py, tests/claims/test_local_reports.py
    """
    spec = checked_spec(spec)
    code = (
        code_of(spec.column, value) if isinstance(spec, _MEASURED) else place_of(spec.column, value)
    )
    (answer,) = randomize(spec, np.array([code], dtype=np.int64), secure_source())
    body = answer.tobytes().hex() if isinstance(spec, UnaryResponse) else int(answer)
    return json.dumps(
        {"discreet": REPORT_FORMAT, "spec": spec.id, "answer": body}, separators=(",", ":")
    )


def reports(spec: LocalSpec, values: Iterable[Any]) -> NDArray[Any]:
    """The answers to many values at once, for simulations and for gateways that hold them: whole
    numbers, or rows of packed bits for `UnaryResponse`.

    `discreet.local` reads these arrays like lists of JSON reports.
    One value gives one answer, drawn as in `report`.
    """
    return randomized(spec, values, secure_source())


def read_spec(text: str) -> Any:
    """The spec from the JSON text of its ``to_dict()``, as a server sends it to devices."""
    try:
        return spec_from_dict(json.loads(plain.text(text, "a spec")))
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        AssertionError,
        RecursionError,
    ):
        raise devices.not_a_spec() from None


def randomized(spec: LocalSpec, values: Iterable[Any], source: Source) -> NDArray[Any]:
    """`reports`, with the bits of `source`."""
    spec = checked_spec(spec)
    read, values = codes_of if isinstance(spec, _MEASURED) else places_of, plain_array(values)
    if not isinstance(values, np.ndarray) or values.ndim != 1 or len(values) <= _CHUNK:
        return randomize(spec, read(spec.column, values), source)
    first = randomize(spec, read(spec.column, values[:_CHUNK]), source)
    out = np.empty((len(values), *first.shape[1:]), dtype=first.dtype)
    out[:_CHUNK] = first
    for start in range(_CHUNK, len(values), _CHUNK):
        out[start : start + _CHUNK] = randomize(
            spec, read(spec.column, values[start : start + _CHUNK]), source
        )
    return out
