"""The coefficient table of a private regression, for the terminal and the notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.accounting import statement
from discreet.exact import decimal_text
from discreet.inference.regression.bases import base_notes
from discreet.inference.regression.decode import step_of
from discreet.inference.results.held import between_units, cautions, data_notes, unit_notes
from discreet.inference.results.summary import Summary, number_text
from discreet.inference.results.told import answers_line, share_text
from discreet.specs.estimating.families import HuberHinge, Logistic, Poisson
from discreet.specs.estimating.tabulated import TabulatedMean

if TYPE_CHECKING:
    from discreet.inference.regression.fit import RegressionResult

TITLES = {
    "robust": "Private robust regression",
    "ols": "Private least squares",
    "logistic": "Private logistic regression",
    "poisson": "Private Poisson regression",
    "m_estimate": "Private M-estimate",
    "erm": "Private minimiser",
}

DISPERSED = 1.15  # mean square of standardised, clipped residuals; Poisson counts have 0.95 or less


def fit_summary(result: RegressionResult, level: float) -> Summary:
    """One line a coefficient: estimate, standard error and its two parts, z, p, interval, and the
    share of the variance that privacy cost.
    """
    percent = f"{100 * level:g}%"
    header = (
        "",
        "coef",
        "std err",
        "sampling",
        "privacy",
        "z",
        "p",
        f"{percent} interval",
        "noise %",
    )
    rows = []
    for record in result.records(level):
        error = record["std_error"]
        rows.append(
            (
                record["coefficient"],
                number_text(record["estimate"], error),
                *(
                    number_text(record[name], error)
                    for name in ("std_error", "sampling_error", "privacy_error")
                ),
                f"{record['z']:.2f}",
                "<.001" if record["p_value"] < 0.001 else f"{record['p_value']:.3f}",
                "none"
                if result.fitted.unbounded
                else f"{number_text(record['low'], error)} … {number_text(record['high'], error)}",
                f"{100 * record['noise_share']:.0f}",
            )
        )
    response = result.releases[-1].description.column
    title = f"{TITLES.get(result.facts.estimator, 'Private regression')} of {response}"
    return Summary(title, header, tuple(rows), tuple(_notes(result)))


def fit_lines(result: RegressionResult) -> tuple[str, str, str]:
    """A fit in three lines: coefficients with their intervals, what they cost, what was asked."""
    first, facts = result.releases[0], result.facts
    response = result.releases[-1].description.column
    entries = (result.entry(place) for place in range(len(result.names)))
    title = f"{TITLES.get(facts.estimator, 'Private regression')} of {response}"
    where = f" where {first.description.where}" if first.description.where else ""
    test = "".join(f" {note}" for note in closing_notes(result) if note.startswith("NOT PRIVATE"))
    return (
        answers_line(title, entries, many=True),
        f"Privacy: {facts.spend}, {len(result.releases)} releases, neighbours {first.neighbors}; "
        f"{share_text(result.noise_share)}.{test}",
        f"Asked: {facts.estimator} of {response} on {len(result.names)} coefficients{where}; "
        f"{result.rows:.0f} rows. summary() says more.",
    )


def overdispersed(result: RegressionResult) -> bool:
    """Whether the scores that a Poisson fit released spread clearly more than Poisson counts would:
    by a fifth, and three standard deviations of their noise.

    In the metric the columns are about white, so that the level of the scores is about the mean
    square of the standardised, clipped residuals.
    """
    scores = result.fitted.scores
    return bool(
        result.family.kind == "poisson"
        and not between_units(result.releases[-1])  # whose level is not that of rows
        and scores.level > DISPERSED + 3 * scores.noise / len(scores.matrix) ** 0.5
    )


def _notes(result: RegressionResult) -> list[str]:
    first, facts = result.releases[0], result.facts
    known = first.public_rows is not None and not any(
        step_of(release).name == "count" for release in result.releases
    )
    notes = [
        (
            f"Spent {statement.asked(facts.spend)} in {len(result.releases)} releases, neighbours "
            f"{first.neighbors}; noise % is the share of the variance that privacy cost."
        ),
        (
            f"{result.rows:.0f} rows ({'public' if known else 'noisy count'}); noise index "
            f"{decimal_text(facts.noise_index, 2)} ({result.noise_class}); condition number "
            f"{result.condition_number:.3g}."
        ),
    ]
    notes += [*filter_notes(result), *clip_notes(result), *base_notes(result)]
    if overdispersed(result):
        notes.append(
            "OVERDISPERSED: standardised residuals have a mean square of "
            f"{result.fitted.scores.level:.2f}, Poisson counts about 0.95; coefficients are off "
            "by more than the intervals say. Name the mean function with dp.m_estimate instead."
        )
    if facts.noise_index >= 0.1:
        notes.append(
            "Noise dominates this fit: intervals are wide and still cover. Spend more, use fewer "
            "columns, or more rows."
        )
    if not result.fitted.resolved:
        notes.append(
            "NOT RESOLVED: the curvature is lost in noise; intervals assume 5 % of its largest "
            "possible value."
        )
    if not result.converged:
        notes.append(
            "NOT CONVERGED: the last gradient stands clear of its noise; its distance was added "
            "to the intervals."
        )
    if result.fitted.separated:
        notes.append(
            "NEARLY SEPARATED: the predictor's standard deviation is about "
            f"{result.fitted.spread:.1f}, so almost every outcome is certain; slopes are known "
            "only roughly, and intervals were widened."
        )
    lost = [name for name, found in result.resolved.items() if not found]
    if lost:
        notes.append(f"Spread lost in noise: {', '.join(lost)}.")
    return [*notes, *closing_notes(result)]


def filter_notes(result: RegressionResult) -> list[str]:
    """Which rows a fit of any solver is about, where a filter was asked for, and what was done to
    their cells.
    """
    where = result.releases[0].description.where
    filtered = [f"Only rows where {where}."] if where else []
    about = [release for release in result.releases if step_of(release).name != "base"]
    return [*filtered, *data_notes(*about, rows=result.rows)]


def clip_notes(result: RegressionResult) -> list[str]:
    """What bounds a row of a residual family."""
    family = result.family
    if isinstance(family, (Logistic, HuberHinge, Poisson, TabulatedMean)):
        return []
    return [
        (
            f"Residuals are clipped at {family.c:g} times the scale "
            f"{number_text(result.scale, result.scale / 100)}, and rows far out may count less."
        )
    ]


def closing_notes(result: RegressionResult) -> list[str]:
    """What every fit's table ends with, whatever its solver:
    alike rows of a unit, and test noise.
    """
    notes = unit_notes(*result.releases)
    return [*notes, *cautions(*result.releases)]
