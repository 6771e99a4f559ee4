"""What a server keeps of reports: sufficient counts.

Reports that are malformed, foreign or impossible are counted as invalid, and change nothing else.

A report is valid if it is an object of the known format, carries the id of the spec, and its answer
is one that a device can send. For noisy numbers that is a range: 64 Laplace scales or 12 standard
deviations beyond the ends, which an honest report leaves with a probability below 1e-27, so that
one forged report cannot move a mean by more than that. Valid forged reports cannot be told from
honest ones: nobody knows what a device was to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.specs.mechanisms.local import (
    GaussianResponse,
    HadamardResponse,
    LaplaceResponse,
    LocalSpec,
    OneBitResponse,
    UnaryResponse,
    checked_spec,
    spec_from_dict,
)

REPORT_FORMAT = "report/1"
_FORMAT = "collected/1"
_SCALES, _DEVIATIONS = 64, 12
_PART = 1 << 16
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Collected:
    """Sufficient counts of reports under one spec; two of them add up.

    `counts` are, by kind of spec: reports of each level; ones of each bit; reports of each output;
    zeros and ones; or, for noisy numbers, the sum of all answers and the sum of their squares,
    in noise steps.
    """

    spec: LocalSpec
    counts: tuple[int, ...]
    reports: int
    invalid: int = 0

    def __add__(self, other: Collected) -> Collected:
        if self.spec != other.spec:
            raise InvalidParameter(
                "adding collected reports",
                "they were made under different specs",
                "their counts do not mean the same",
                "infer from each alone",
            )
        return Collected(
            self.spec,
            tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)),
            self.reports + other.reports,
            self.invalid + other.invalid,
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "discreet": _FORMAT,
            "spec": self.spec.to_dict(),
            "counts": list(self.counts),
            "reports": self.reports,
            "invalid": self.invalid,
        }

    def to_json(self) -> str:
        """All of it, as JSON text."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Collected:
        """What `to_json` wrote; anything else is refused."""
        try:
            return collected_from_dict(json.loads(text))
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
            AssertionError,
            RecursionError,
        ):
            raise InvalidParameter(
                "Collected.from_json",
                f"this is not a text of {_FORMAT}",
                "another layout could be read wrongly",
                "pass what to_json() of this version wrote",
            ) from None


def collected_from_dict(record: dict[str, Any]) -> Collected:
    """What `Collected.to_dict` wrote; raises ValueError where its counts cannot be those of its
    reports.
    """
    if record["discreet"] != _FORMAT:
        raise ValueError("another format")
    spec, counts, reports, invalid = (
        spec_from_dict(record["spec"]),
        tuple(record["counts"]),
        record["reports"],
        record["invalid"],
    )
    whole = (
        all(type(number) is int for number in (*counts, reports, invalid))
        and min(reports, invalid) >= 0
    )
    if not whole or len(counts) != len(_counts(spec, _as_array(spec, []))):
        raise ValueError("not whole numbers, or too few")
    if isinstance(spec, (LaplaceResponse, GaussianResponse)):
        possible = counts[1] >= 0 and counts[0] ** 2 <= counts[1] * reports
    elif isinstance(spec, UnaryResponse):
        possible = all(0 <= count <= reports for count in counts)
    else:
        possible = min(counts) >= 0 and sum(counts) == reports
    if not possible:
        raise ValueError("counts that no reports have")
    return Collected(spec, counts, reports, invalid)


def collect(spec: LocalSpec, reports: Iterable[Any]) -> Collected:
    """Count reports: JSON texts (or their bytes), or an array of answers as `client.reports`
    gives it. Never fails because of a report.
    """
    checked_spec(spec)
    if isinstance(reports, Collected):
        if reports.spec != spec:
            raise InvalidParameter(
                "reports",
                "they were collected under another spec",
                "their counts do not mean the same",
                "pass the spec they were made with",
            )
        return reports
    if isinstance(reports, (str, bytes)):
        reports = [reports]
    if isinstance(reports, np.ndarray) and reports.dtype.kind in "iu":
        return _from_array(spec, reports)
    answers = [_answer(spec, text) for text in reports]
    valid = [answer for answer in answers if answer is not None]
    return Collected(
        spec, _counts(spec, _as_array(spec, valid)), len(valid), len(answers) - len(valid)
    )


def answers_of(spec: Any) -> int:
    """How many different answers there are (chosen levels, outputs, bits)."""
    return (
        spec.outputs
        if isinstance(spec, HadamardResponse)
        else 2
        if isinstance(spec, OneBitResponse)
        else spec.size
    )


def _from_array(spec: Any, answers: NDArray[Any]) -> Collected:
    total = len(answers)
    if isinstance(spec, UnaryResponse):
        if answers.ndim != 2 or answers.shape[1] != -(-spec.size // 8) or answers.dtype != np.uint8:
            return Collected(spec, (0,) * spec.size, 0, total)
        spare = (1 << (8 * answers.shape[1] - spec.size)) - 1
        answers = answers[(answers[:, -1] & np.uint8(spare)) == 0]
    elif answers.ndim != 1:
        return Collected(spec, _counts(spec, np.zeros(0, dtype=np.int64)), 0, total)
    else:
        low, high = _range(spec)
        if total and (int(answers.min()) < low or int(answers.max()) > high):
            answers = answers[(answers >= low) & (answers <= high)]
    return Collected(spec, _counts(spec, answers), len(answers), total - len(answers))


def _answer(spec: Any, text: Any) -> Any:
    """The answer of one report, or None where it is invalid."""
    if not isinstance(text, (str, bytes)) or len(text) > 300 + spec_length(spec):
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(record, dict)
        or set(record) != {"discreet", "spec", "answer"}
        or record["discreet"] != REPORT_FORMAT
        or record["spec"] != spec.id
    ):
        return None
    answer = record["answer"]
    if isinstance(spec, UnaryResponse):
        return _bits(spec, answer)
    low, high = _range(spec)
    return answer if type(answer) is int and low <= answer <= high else None


def spec_length(spec: Any) -> int:
    """The most characters that an answer can have."""
    return 2 * (-(-spec.size // 8)) if isinstance(spec, UnaryResponse) else 40


def _bits(spec: UnaryResponse, answer: Any) -> Any:
    width = -(-spec.size // 8)
    if (
        type(answer) is not str
        or len(answer) != 2 * width
        or not set(answer) <= set("0123456789abcdef")
    ):
        return None
    row = np.frombuffer(bytes.fromhex(answer), dtype=np.uint8)
    return row if int(row[-1]) & ((1 << (8 * width - spec.size)) - 1) == 0 else None


def _range(spec: Any) -> tuple[int, int]:
    """The answers that count as possible."""
    if not isinstance(spec, (LaplaceResponse, GaussianResponse)):
        return 0, answers_of(spec) - 1
    grid, noise = spec.column.encoding(), spec.noise
    beyond = int(noise.steps * (_SCALES if isinstance(spec, LaplaceResponse) else _DEVIATIONS)) + 1
    return (grid.low << noise.refinement) - beyond, (grid.high << noise.refinement) + beyond


def _as_array(spec: Any, valid: list[Any]) -> NDArray[Any]:
    if isinstance(spec, UnaryResponse):
        return np.array(valid, dtype=np.uint8).reshape(len(valid), -(-spec.size // 8))
    return np.array(valid, dtype=np.int64)


def _counts(spec: Any, answers: NDArray[Any]) -> tuple[int, ...]:
    if isinstance(spec, (LaplaceResponse, GaussianResponse)):
        # Python integers: squares pass 64 bits
        parts = [
            answers[start : start + _PART].astype(object) for start in range(0, len(answers), _PART)
        ]
        return int(sum(part.sum() for part in parts)), int(
            sum((part * part).sum() for part in parts)
        )
    if isinstance(spec, UnaryResponse):
        total = np.zeros(spec.size, dtype=np.int64)
        for start in range(0, len(answers), _PART):
            total += np.unpackbits(answers[start : start + _PART], axis=1, count=spec.size).sum(
                axis=0, dtype=np.int64
            )
        return tuple(total.tolist())
    return tuple(np.bincount(answers, minlength=answers_of(spec)).tolist())
