"""Golden cases of local privacy: made-up devices and what their reports tell."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from golden_told import attempt, plain, told

from discreet import client, local
from discreet.testing import SeededSource, seeded_reports

COLOURS = client.Category(["red", "green", "blue", "grey", "pink"], missing="grey")
LOCAL_SPECS: dict[str, Any] = {
    "randomized": client.RandomizedResponse(COLOURS, epsilon=1.5),
    "two coins": client.TwoCoinResponse(client.Boolean()),
    "unary": client.UnaryResponse(COLOURS, epsilon=1.5),
    "hadamard": client.HadamardResponse(COLOURS, epsilon=1.5),
    "hadamard of two blocks": client.HadamardResponse(COLOURS, 2, 2),
    "one bit": client.OneBitResponse(client.Real(0, 10), epsilon=1.2),
    "laplace": client.LaplaceResponse(client.Real(0, 10, missing=3), epsilon=1.2),
    "laplace of whole numbers": client.LaplaceResponse(client.Integer(0, 9), epsilon=2),
    "gaussian": client.GaussianResponse(client.Real(0, 10), mu=0.8),
}
MEASURED = ("one bit", "laplace", "laplace of whole numbers", "gaussian")


def local_values(name: str, count: int = 160) -> list[Any]:
    """What the devices hold; some of it does not fit the column."""
    if name == "two coins":
        return [place % 3 == 0 for place in range(count)]
    if name in MEASURED:
        odd = {5: None, 17: -3.5, 29: 40.0, 31: "7.25", 37: math.nan}
        return [odd.get(place, (7 * place % 101) / 10.1) for place in range(count)]
    odd = {3: None, 8: "mauve"}
    levels = ("red", "green", "blue", "grey", "pink", "red", "green", "red")
    return [odd.get(place, levels[place % 8]) for place in range(count)]


def local_calls() -> dict[str, Callable[[], Any]]:
    """Reports, shares, means, tests and descents from seeded devices."""

    def reported(name: str) -> Any:
        spec = LOCAL_SPECS[name]
        answers = seeded_reports(spec, local_values(name), f"local {name}")
        collected = local.collect(spec, answers)
        return {
            "spec": spec.to_dict(),
            "id": spec.id,
            "again": client.read_spec(json.dumps(spec.to_dict())) == spec,
            "guarantee": str(local.guarantee(spec)),
            "answers": answers.tolist(),
            "collected": json.loads(collected.to_json()),
            "refused": attempt(
                lambda: (local.shares if name in MEASURED else local.mean)(spec, collected)
            ),
        }

    def inferred(name: str) -> Any:
        spec = LOCAL_SPECS[name]
        answers = seeded_reports(spec, local_values(name), f"local {name}")
        result = (local.mean if name in MEASURED else local.shares)(spec, answers)
        found = told(result)
        for target in ("population", "data"):
            found[target] = {
                method: attempt(
                    lambda m=method, t=target: result.confidence_interval(0.9, target=t, method=m)
                )
                for method in ("exact", "score")
            }
        if name in MEASURED:
            found["tests"] = [
                attempt(lambda a=a: told(result.test(4, alternative=a))) for a in SIDES
            ]
            return found
        found["simultaneous"] = plain(result.confidence_interval(0.9, simultaneous=True))
        label = result.labels[1]
        found["tests"] = [
            attempt(lambda a=a: told(result.test(0.3, label=label, alternative=a))) for a in SIDES
        ]
        found["p values"] = plain(result.p_values(0.2))
        even = [1 / len(result.labels)] * len(result.labels)
        found["fit"] = attempt(lambda: result.goodness_of_fit(even))
        return found

    def different(name: str) -> Any:
        spec = LOCAL_SPECS[name]
        values = local_values(name, 200)
        groups = [
            local.shares(spec, seeded_reports(spec, part, f"{name} {place}"))
            for place, part in enumerate((values[:90], values[90:]))
        ]
        found = local.difference(*groups, label=groups[0].labels[1])
        record = told(found) | {"interval": found.confidence_interval(0.9)}
        return record | {"tests": [told(found.test(alternative=side)) for side in SIDES]}

    calls: dict[str, Callable[[], Any]] = {}
    for name in LOCAL_SPECS:
        calls[f"reports/{name}"] = lambda name=name: reported(name)
        calls[f"result/{name}"] = lambda name=name: inferred(name)
    for name in ("randomized", "two coins", "unary", "hadamard"):
        calls[f"difference/{name}"] = lambda name=name: different(name)
    for loss in ("logistic", "huber"):
        calls[f"descent/{loss}"] = lambda loss=loss: descent(loss)
    calls["bad reports"] = lambda: json.loads(
        local.collect(LOCAL_SPECS["randomized"], ["{}", b"[]", "nonsense"]).to_json()
    )
    return calls


SIDES = ("two-sided", "less", "greater")


def descent(loss: str) -> Any:
    """Three rounds of a gradient descent that a dozen seeded devices answer."""
    devices = [
        client.LocalGradients(3.0, 3, source=SeededSource(f"{loss} {place}")) for place in range(12)
    ]
    request, rounds = client.GradientRequest(1, (0.0, 0.0), loss, clip=1.5), []
    for _ in range(3):
        reports = [
            device.report([1.0, (-1.0) ** place], float(place % 3 == 0), request)
            for place, device in enumerate(devices)
        ]
        mean = local.mean_gradient(reports, request)
        rounds.append([plain(request.to_dict()), reports, plain(mean)])
        request = local.next_request(reports, request, step_size=2.0)
    return {"rounds": rounds, "next": request.to_dict(), "refused": _answered_twice(devices[0])}


def _answered_twice(device: Any) -> Any:
    return attempt(lambda: device.report([1.0, 1.0], 0.0, client.GradientRequest(1, (0.0, 0.0))))
