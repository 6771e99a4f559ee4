"""Inference from randomised reports: what devices sent (`discreet.client`) becomes shares and means
with honest intervals.

    collect(spec, reports)   counts what is sufficient; bad reports are counted apart
    shares(spec, reports)    the share of every declared value
    mean(spec, reports)      the mean of a bounded number
    difference(a, b)         of the shares of one value in two groups
    guarantee(spec)          what one report promises to the person who sends it
    next_request(reports, request, step_size=)   the next round of a gradient descent that devices
                             answer (`client.LocalGradients`)

Everything here is post-processing of reports that are private already:
it reads no data and draws no noise.
"""

from discreet.local.collected import Collected, collect
from discreet.local.descent import LocalRound, mean_gradient, next_request
from discreet.local.differences import Difference, difference
from discreet.local.means import LocalMean
from discreet.local.questions import guarantee, mean, result_from_json, shares
from discreet.local.results import LocalResult
from discreet.local.shares import LocalShares

__all__ = [
    "Collected",
    "Difference",
    "LocalMean",
    "LocalResult",
    "LocalRound",
    "LocalShares",
    "collect",
    "difference",
    "guarantee",
    "mean",
    "mean_gradient",
    "next_request",
    "result_from_json",
    "shares",
]
