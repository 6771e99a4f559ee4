"""Any test, made private: it is run on secret disjoint parts of the data, and only the noisy number
of rejections is released (reference.md K1, K2).
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Callable, Sequence
from typing import Any

from discreet import plain
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.asking.cells import Where, rows_asked
from discreet.asking.expected import imagined_release, release_preview
from discreet.asking.noise_choice import require_spend
from discreet.asking.preview import Assumptions, Preview
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter, WrongColumnKind
from discreet.estimators.basic import _open
from discreet.exact import rational
from discreet.inference.counts.part_tests import PartsResult, best_split
from discreet.inference.counts.tulap import ReleasedNoise
from discreet.schema import Open
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.specs.queries.parts import PartRejections
from discreet.trusted.release import Description, PublicFacts, Question

FEWEST_ROWS_A_PART = 10


@plain.door
def subsample_test(
    session: Session,
    test: Callable[..., float],
    *,
    columns: str | Sequence[str],
    spend: Guarantee,
    parts: int | None = None,
    inner: float | None = None,
    where: Where | None = None,
    key: str | None = None,
) -> PartsResult:
    """Make any test private: ``dp.subsample_test(session, lambda x, g:
    ttest_ind(x[g], x[~g]).pvalue, columns=["income", "member"], spend=dp.PureDP(1)).test()``.

    `test` is a plain function from arrays (the columns, in the order named: clamped numbers,
    True/False, or levels) to a p-value. The rows are put at random into `parts` secret parts,
    a unit's rows together; the test runs in each at level `inner`; the number of rejections is
    released with noise, and a binomial test says whether it is more than `inner` explains. Left
    out, `parts` and `inner` are the pair that finds the weakest signal at this spend.

    **The function runs beside the private data with your rights.** It must be one you trust:
    it must depend on its arguments alone (no state between calls, no clock) and must not write them
    anywhere. Failures and NaN count as no rejection. It has no time limit, since a clock would let
    one part decide over another. A test made for its data has more power: this is the fallback for
    tests that have no private form.

    Formula.
            rejections = #{parts with p-value ≤ inner} + Z

            under the null the number without Z is Binomial(parts, inner) at most

    Validity. Independent rows, and a test that keeps its level in a part.
    Price.    The spend, once a key, whatever the function computes.
    Example.
            from scipy.stats import ttest_ind

            def differ(income, sex):
                return ttest_ind(income[sex == "male"], income[sex == "female"]).pvalue

            session = dp.load_census().open(budget=dp.GDP(2))
            found = dp.subsample_test(session, differ, columns=["income", "sex"], spend=dp.GDP(1))
            print(found.test())
    See also. `dp.subsample`, `dp.compare_means`.
    """
    question = subsample_question(
        _open(session).public,
        test,
        columns=columns,
        spend=spend,
        parts=parts,
        inner=inner,
        where=where,
    )
    return PartsResult(_open(session).release(question, key=key))


def subsample_question(
    public: PublicFacts,
    test: Callable[..., float],
    *,
    columns: str | Sequence[str],
    spend: Guarantee,
    parts: int | None = None,
    inner: float | None = None,
    where: Where | None = None,
) -> Question:
    if not callable(test):
        raise InvalidParameter(
            "test",
            f"a {type(test).__name__} is not a function",
            "it is run on every part",
            "pass a function from arrays to a p-value",
        )
    names = (
        (columns,)
        if isinstance(columns, str)
        else tuple(columns)
        if isinstance(columns, Sequence)
        else ()
    )
    for name in names:
        if isinstance(public.schema[name], Open):
            raise WrongColumnKind(
                name, "Open", "Real, Integer, Boolean or Category", "a test on parts"
            )
    noise = _noise(spend)
    chosen_parts, chosen_inner = _split(public, noise, parts, inner)
    cells = rows_asked(public.schema, where, *names)
    query = PartRejections(
        cells.keys, names, chosen_parts, rational(chosen_inner, "inner"), function_name(test), test
    )
    return Question(
        Description("parts", getattr(test, "__name__", "test"), where=cells.where),
        query,
        noise,
        spend,
    )


def _noise(spend: Guarantee) -> AdditiveNoise:
    if isinstance(require_spend(spend), PureDP):
        return geometric_noise(
            L1(rational(1, "sensitivity")),
            rational(spend.epsilon, "epsilon"),  # type: ignore[union-attr]
        )
    return gaussian_noise(L2(rational(1, "sensitivity")), spend_mu_squared(spend))


def _split(
    public: PublicFacts, noise: AdditiveNoise, parts: int | None, inner: float | None
) -> tuple[int, float]:
    """What the caller chose, else the pair that finds the weakest signal, with at least
    FEWEST_ROWS_A_PART rows a part where their number is public.
    """
    if parts is not None and inner is not None:
        return parts, inner
    law = ReleasedNoise("gaussian" if noise.kind == "gaussian" else "tulap", float(noise.spread))
    best, level = best_split(
        law, 10**9 if public.rows is None else max(1, public.rows // FEWEST_ROWS_A_PART)
    )
    return best if parts is None else parts, level if inner is None else inner


def function_name(test: Callable[..., Any]) -> str:
    """What the ledger keeps of a function: its name and a hash of its code,
    so that a key is bound to it.
    """
    code = getattr(test, "__code__", None)
    text = (
        f"{getattr(test, '__module__', '')}."
        f"{getattr(test, '__qualname__', type(test).__qualname__)}"
    )
    if type(code) is not types.CodeType:
        return text
    names = repr((code.co_names, code.co_varnames)).encode()
    return f"{text}#{hashlib.sha256(code.co_code + names).hexdigest()[:16]}"


def subsample_preview(
    session: Session, question: Question, assume: Assumptions, level: float
) -> Preview:
    """The expected interval of the share of parts where the assumed share (default: the inner
    level) of them rejects.
    """
    query, mechanism = question.query, question.mechanism
    assert isinstance(query, PartRejections)
    assert isinstance(mechanism, AdditiveNoise)
    share = float(query.level) if assume.share is None else float(assume.share)
    rejections = round(share * query.parts) << mechanism.refinement
    release = imagined_release(session.public, question, (rejections,))
    words = f"{query.parts} parts, a share of {share:.3g} of which rejects"
    return release_preview(session, question, (release, words), level)
