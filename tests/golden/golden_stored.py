"""What a version of the library wrote, kept for all later ones: ledgers, results, reports.

A folder tests/golden/stored/<version> holds

    survey.csv.gz          the data that the ledgers' debits name, by the fixed path `place_of_data`
    <name>.ledger.gz       SQLite files, with stored answers, reservations, a debit without answer
    ledgers.json           what each of them said: balance, head, replays by every accountant
    results.json.gz        for every key of every ledger the result's JSON text; its summary and
                           figures too, for the ledgers in `TOLD` and for all fits
    local.json             local questions, reports of devices, what was collected and inferred

Noise in them is secret and cannot be drawn again, so a folder is written once, by
``tests/golden/store.py``, and then never changed. The questions of `golden_asks` are bound to them
by their keys: add questions there, change none.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import golden_asks as asks
from golden_data import RELATIONS, SCHEMA, survey, write_csv
from golden_told import attempt, figures, plain

import discreet as dp
from discreet import client, local

STORED = Path(__file__).parent / "stored"
ACCOUNTANTS = ("pld", "rdp", "gdp", "zcdp")
DELTA = 0.02
TOLD = ("gdp", "pure", "approx-split")


@dataclass(frozen=True)
class Kind:
    """A ledger to keep: its budget, the relation, the spends and whether fits are asked of it."""

    budget: Any
    relation: str
    spends: tuple[str, ...]
    fits: tuple[str, ...] = ()
    split: tuple[tuple[str, float], ...] = ()


KINDS: dict[str, Kind] = {
    "gdp": Kind(
        dp.GDP(40), "replace", ("gdp",), ("ols", "ols moments", "robust newton", "own mean")
    ),
    "pure": Kind(dp.PureDP(200), "replace", ("pure",)),
    "approx": Kind(dp.ApproxDP(200, 0.01), "replace", ("approx",), ("ols sgd", "ols gradient")),
    "approx-split": Kind(
        dp.ApproxDP(300, 0.01),
        "addremove",
        ("pure", "approx"),
        ("logistic", "logistic sgd"),
        (("pure", 120.0), ("delta0", 0.005)),
    ),
    "gdp-unit": Kind(dp.GDP(40), "replace-unit", ("gdp",)),
    "zcdp": Kind(dp.ZCDP(60), "replace", ("zcdp",), ("poisson",), (("delta0", 0.001),)),
    "zcdp-unit": Kind(
        dp.ZCDP(60), "addremove-unit", ("gdp",), ("robust c", "own psi"), (("delta0", 0.001),)
    ),
}


def versions() -> list[str]:
    """The versions that have a folder."""
    return sorted(path.name for path in STORED.iterdir() if path.is_dir())


def place_of_data(version: str) -> Path:
    """Where a version's ledgers expect their data: the path is part of every debit."""
    return Path("/tmp") / f"discreet-golden-{version}" / "survey.csv"


def put_data(version: str) -> Path:
    """The kept data at its place; written only where it is not there yet, and then at once."""
    path, kept = (
        place_of_data(version),
        gzip.decompress(_folder(version, "survey.csv.gz").read_bytes()),
    )
    if not path.exists() or path.read_bytes() != kept:
        path.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as new:
            new.write(kept)
        os.replace(new.name, path)
    return path


def data_set(version: str, kind: Kind) -> Any:
    """The kept data as a ledger's sessions declare it."""
    relation = RELATIONS[kind.relation]
    return dp.read_csv(put_data(version), schema=SCHEMA, neighbors=relation)


def questions(kind: Kind) -> Iterator[tuple[str, asks.Ask, Any]]:
    """(key, question, spend) of everything that is asked of a ledger."""
    for spend in kind.spends:
        for name, ask in (asks.ASKS | asks.SEARCHES).items():
            yield f"{name}/{spend}", ask, asks.SPENDS[spend]
    for name in kind.fits:
        yield f"{name}/fit", asks.FITS[name], dp.GDP(1.5)


def ledger_facts(ledger: Any) -> dict[str, Any]:
    """What a ledger says of itself, by exact fractions, texts and floats."""
    return {
        "head": ledger.head,
        "budget": ledger.budget.to_dict(),
        "guarantee": ledger.guarantee(),
        "box": plain(ledger.box),
        "spent": plain(ledger.spent().exact()),
        "remaining": plain(ledger.remaining().exact()),
        "reserved": plain(ledger.reserved().exact()),
        "open reservations": ledger.open_reservations(),
        "entries": len(ledger.entries()),
        "spent guarantee": plain(ledger.spent_guarantee(DELTA).to_dict()),
        "text": str(ledger).split(": ", 1)[1],
    }


def replay_facts(ledger: Any) -> dict[str, Any]:
    """The history by every accountant."""
    return {
        name: attempt(lambda name=name: ledger.replay(name, delta=DELTA)) for name in ACCOUNTANTS
    }


def result_facts(result: Any) -> dict[str, Any]:
    """What is kept of a result beside its JSON text."""
    return {"text": str(result), "figures": figures(result)}


def unpacked(version: str, name: str, folder: Path) -> Path:
    """A kept ledger as a file of its own in `folder`."""
    path = folder / f"{name}.ledger"
    path.write_bytes(gzip.decompress(_folder(version, f"{name}.ledger.gz").read_bytes()))
    return path


def kept(version: str, name: str) -> Any:
    """A kept JSON file."""
    path = _folder(version, name)
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def _folder(version: str, name: str) -> Path:
    return STORED / version / name


# ── writing, once ─────────────────────────────────────────────────────────────────────────────────


def store(version: str) -> None:
    """Writes the folder of a version that has none yet."""
    folder = STORED / version
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "survey.csv"
        write_csv(survey(), path)
        _pack(path, folder / "survey.csv.gz")
        ledgers, results = {}, {}
        for name, kind in KINDS.items():
            path = Path(made) / f"{name}.ledger"
            facts, answers = _stored_ledger(version, kind, path, name in TOLD)
            _pack(path, folder / f"{name}.ledger.gz")
            ledgers[name] = facts
            results |= {f"{name}/{key}": answer for key, answer in answers.items()}
    _write(folder / "ledgers.json", json.dumps(ledgers, indent=1, ensure_ascii=False))
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(one)}" for key, one in results.items())
    packed = gzip.compress(f"{{\n{lines}\n}}\n".encode(), 9, mtime=0)
    (folder / "results.json.gz").write_bytes(packed)
    _write(folder / "local.json", json.dumps(_stored_local(), indent=1, ensure_ascii=False))
    shutil.rmtree(place_of_data(version).parent)


def _write(path: Path, text: str) -> None:
    path.write_text(text + "\n", encoding="utf-8")


def _pack(path: Path, packed: Path) -> None:
    packed.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


def _stored_ledger(version: str, kind: Kind, path: Path, told: bool) -> tuple[Any, dict[str, Any]]:
    ledger = dp.Ledger.open(kind.budget, path=path, **dict(kind.split))
    session = data_set(version, kind).open(ledger=ledger)
    answers: dict[str, Any] = {}
    for key, ask, spend in questions(kind):
        try:
            result = ask(session, spend, key=key)
        except (dp.NoTheorem, dp.InvalidParameter, dp.BudgetExceeded):
            continue
        answers[key] = {"json": result.to_json()}
        if told or key.endswith("/fit"):
            answers[key] |= result_facts(result)
        if key == "ols/fit":
            residuals = dp.residuals(session, result, spend=dp.GDP(0.4), bins=6, key="residuals")
            answers["residuals"] = {"json": residuals.to_json()} | result_facts(residuals)
    share = dp.PureDP(0.25) if isinstance(kind.budget, dp.PureDP) else dp.GDP(0.25)
    for key in ("open", "closed", "open and used"):
        session.reserve(share, key=f"reservation {key}")
    ledger.close_reservation("reservation closed")
    first = next(entry for entry in ledger.entries() if entry.kind == "debit")
    small = {"request": first.request, "price": first.amounts.exact()}
    ledger.debit(key=f"{first.key} unfinished", **small)
    smaller = next(e for e in ledger.entries() if e.kind == "debit" and _fits(ledger, e))
    ledger.debit(
        key=f"{smaller.key} reserved",
        request=smaller.request,
        price=smaller.amounts.exact(),
        reservation="reservation open and used",
    )
    dp.watch(session, 100, spend=share, positives=2)
    facts = ledger_facts(ledger) | {"replays": replay_facts(ledger)}
    facts["unfinished"] = first.key
    return facts, answers


def _fits(ledger: Any, entry: Any) -> bool:
    left = ledger.left_in("reservation open and used").exact()
    price = entry.amounts.exact()
    names = ("epsilon", "mu_squared", "delta", "rho")
    return all(getattr(price, name) <= getattr(left, name) for name in names)


def _stored_local() -> dict[str, Any]:
    import golden_more as more

    found: dict[str, Any] = {}
    shares: dict[str, Any] = {}
    for name, spec in more.LOCAL_SPECS.items():
        values = more.local_values(name, 40)
        reports = [client.report(spec, value) for value in values]
        answers = client.reports(spec, values)
        infer = local.mean if name in more.MEASURED else local.shares
        result = shares[name] = infer(spec, reports)
        found[name] = {
            "spec": json.dumps(spec.to_dict()),
            "id": spec.id,
            "guarantee": str(local.guarantee(spec)),
            "reports": [*reports, "{}", "no report"],
            "collected": local.collect(spec, [*reports, "{}", "no report"]).to_json(),
            "answers": answers.tolist(),
            "collected answers": local.collect(spec, answers).to_json(),
            "json": result.to_json(),
            **result_facts(result),
        }
    both = local.difference(shares["randomized"], shares["unary"], label="green")
    test = shares["two coins"].test(0.5)
    found["difference"] = {"json": both.to_json(), **result_facts(both)}
    found["test"] = {"json": test.to_json(), **result_facts(test)}
    request = client.GradientRequest(1, (0.0, 0.5), "huber", clip=2.0)
    devices = [client.LocalGradients(2.0, 1) for _ in range(5)]
    sent = [
        json.dumps(one.report([1.0, float(place)], 1.0, request))
        for place, one in enumerate(devices)
    ]
    reports = [json.loads(text) for text in sent]
    found["descent"] = {
        "request": request.to_dict(),
        "reports": sent,
        "mean": plain(local.mean_gradient(reports, request)),
        "next": local.next_request(reports, request, step_size=1.0).to_dict(),
    }
    return found
