"""Local reports: one coin a device, millions of devices at once.

The method of runs, with a rule for every report that the pilot saw: the one of two values that it
is likelier from. Under ε-DP the rule says nothing where the pilot saw them about equally often.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.accounting.guarantees import PureDP
from discreet.audits.bounds import of_guesses
from discreet.audits.results import AuditResult
from discreet.inference.simulation.streams import Stream
from discreet.local.questions import guarantee
from discreet.testing.seeded import seeded_reports

PILOT_SHARE = 10
TOGETHER = 1 << 18
CLEAR = 4.0  # standard errors by which frequencies must differ
CELLS = 64  # of reports on a fine grid


def audited(
    spec: Any, values: tuple[Any, Any], *, runs: int, level: float, seed: int
) -> AuditResult:
    """Guesses of `runs` reports, each of one of two values."""
    claim = guarantee(spec)
    pilot = max(1000, runs // PILOT_SHARE // 2)
    seen = [_words(seeded_reports(spec, [value] * pilot, f"{seed}/{value!r}")) for value in values]
    ends = _ends(np.concatenate(seen))
    abstaining = isinstance(claim, PureDP)
    cells = [_cells(words, ends) for words in seen]
    rule = _rule(*cells, cells=len(ends) + 1, abstaining=abstaining)
    right = guesses = 0
    for start in range(0, runs, TOGETHER):
        size = min(TOGETHER, runs - start)
        coins = Stream(f"reports/{seed}").uniforms((size,), f"coins {start}") < 0.5
        held = np.array(values, dtype=object)[coins.astype(int)].tolist()
        words = _words(seeded_reports(spec, held, f"{seed}/{start}"))
        guess = rule[_cells(words, ends)]
        said = guess != 0 if abstaining else np.ones(size, dtype=bool)
        guesses += int(said.sum())
        right += int(((guess > 0) == coins)[said].sum())
    lower, unlikely = of_guesses(claim, right, guesses, runs, level)
    return AuditResult(
        type(spec).__name__,
        claim,
        lower,
        level,
        unlikely,
        "runs",
        runs,
        (f"Right in {right} of {guesses} guesses.",),
    )


def _words(reports: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Each report as one number: packed bits by the first eight bytes, which hold both values."""
    if reports.ndim == 1:
        return reports.astype(np.int64)
    eight = np.zeros((len(reports), 8), dtype=np.uint8)
    eight[:, : min(8, reports.shape[1])] = reports[:, :8]
    return eight.view(np.int64).ravel()


def _ends(words: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where cells of reports begin: at each one where they are few, else at quantiles."""
    distinct = np.unique(words)
    if len(distinct) <= CELLS * CELLS:
        return distinct[1:]
    return np.unique(np.quantile(words, np.linspace(0, 1, CELLS + 1)[1:-1]).astype(np.int64))


def _cells(words: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.searchsorted(ends, words, side="right")


def _rule(
    first: npt.NDArray[np.int64], second: npt.NDArray[np.int64], *, cells: int, abstaining: bool
) -> npt.NDArray[np.float64]:
    """+1 where a report is likelier of the second value, −1 of the first; `abstaining`: 0 where
    neither is clear, and where the ratio is not near the largest.
    """
    counts = [np.bincount(side, minlength=cells) + 0.5 for side in (first, second)]
    ratio = np.log(counts[1] / counts[0])
    if not abstaining:
        return np.asarray(np.sign(ratio))
    error = np.sqrt(1 / counts[0] + 1 / counts[1])
    clear = np.abs(ratio) > CLEAR * error
    largest = np.max(np.abs(ratio), where=clear, initial=0.0)
    telling = clear & (np.abs(ratio) + CLEAR * error >= largest)
    return np.where(telling, np.sign(ratio), 0.0)
