"""A release about what a function gave on secret parts, read as one about a table of them."""

from __future__ import annotations

from dataclasses import replace

from discreet.neighbors import Replace
from discreet.specs.aggregation.part_outputs import PartOutputs
from discreet.trusted.release import Release


def of_table(release: Release) -> Release:
    """The release as it is read by the results of an ordinary table: a row for each part, their
    number public, one of them replaced. Any other release is returned as it is.
    """
    query = release.query
    if not isinstance(query, PartOutputs):
        return release
    column = query.names[0] if len(query.names) == 1 else None
    return replace(
        release,
        description=replace(release.description, column=column, where=""),
        query=query.about,
        neighbors=Replace(),
        public_count=query.parts,
        filled=query.outputs.filled_in(query.names),
    )


def part_notes(release: Release) -> tuple[str, ...]:
    """What a summary says of the parts: how many, of how many rows, and what a failure counts as;
    nothing of a release that has none.
    """
    query = release.query
    if not isinstance(query, PartOutputs):
        return ()
    units = "rows" if release.neighbors.unit is None else "units"
    count = release.public_count
    about = "at most about" if query.keys else "about"
    size = "" if count is None else f" of {about} {count / query.parts:.4g} {units}"
    notes = [f"{query.name.partition('#')[0]} ran on {query.parts} secret parts{size}."]
    filled = query.outputs.filled_in(query.names)
    if filled:
        same = len({value for _, value in filled}) == 1
        counts = filled[0][1] if same else ", ".join(f"{name} = {value}" for name, value in filled)
        notes.append(f"A part on which it fails, or gives no such number, counts as {counts}.")
    elif any(one.kind == "category" for one in query.declared):
        notes.append("A part on which it fails, or gives no declared level, has no vote.")
    return tuple(notes)
