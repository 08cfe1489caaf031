"""Constraints: the arguments `fixed`, `groups`, `max_objects`, `memory`, `phases` and `max_moves`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._arrays import check_length, integers, number, numbers

Places: TypeAlias = int | str | Iterable[int]


class Wish(NamedTuple):
    """Where a task should be: it goes there if the slowest PE takes at most `seconds` more for it."""

    place: Places
    """A PE, several PEs, ``"0-3,8"``, ``"node:2"`` or ``"!5"``."""
    seconds: float
    """What the wish is worth."""


Place: TypeAlias = Places | Wish
Fixed: TypeAlias = Mapping[int, Place] | Iterable[int | None] | str | os.PathLike[str] | None
Groups: TypeAlias = Iterable[str] | str | os.PathLike[str] | None
Amount: TypeAlias = ArrayLike | os.PathLike[str] | None
Phases: TypeAlias = ArrayLike | str | os.PathLike[str] | None


def limits(
    database: _core.Database,
    fixed: Fixed,
    groups: Groups,
    max_objects: Amount,
    memory: Amount,
    phases: Phases,
    max_moves: int | str | None,
) -> dict[str, Any]:
    """The constraints as the compiled module takes them."""
    return {
        "fixed": _fixed(database, fixed),
        "groups": _groups(groups),
        "max_objects": _amount("max_objects", max_objects),
        "memory": _amount("memory", memory),
        "phases": _phases(database, phases),
        "max_moves": max_moves if max_moves is None or isinstance(max_moves, str) else str(number("max_moves", max_moves, 0)),
    }


def _fixed(database: _core.Database, fixed: Fixed) -> str | tuple[str] | None:
    if fixed is None:
        return None
    if isinstance(fixed, str | os.PathLike):
        return (os.fspath(fixed),)
    if isinstance(fixed, Mapping):
        return "\n".join(f"{number('a task of fixed', task, 0)} {_place(place)}" for task, place in fixed.items())
    if not isinstance(fixed, Iterable):
        raise TypeError(f"fixed is {fixed!r}; give {{task: place}}, a list with a PE or None for each task, or a file")
    pes = [None if pe is None else number("a PE of fixed", pe, 0) for pe in fixed]
    check_length("fixed", pes, database.sizes[1])
    ids = database.objects()["id"]
    return "\n".join(f"{ids[at]} {pe}" for at, pe in enumerate(pes) if pe is not None)


def _place(place: Any) -> str:
    """The words of a place: `3`, `0,1,8`, `node:2`, `!5`, and the seconds of a wish."""
    if isinstance(place, Wish):
        seconds = float(numbers("the seconds of a wish", place.seconds, 0))
        return f"{_place(place.place)} {seconds!r}"
    if isinstance(place, str):
        return place
    if isinstance(place, Iterable):
        pes = list(place)
        # A text or a list is no PE, so this pair is a wish; two numbers are two PEs.
        if isinstance(place, tuple) and len(pes) == 2 and isinstance(pes[0], str | tuple | list):
            return _place(Wish(pes[0], pes[1]))
        if any(isinstance(pe, float) for pe in pes):
            raise TypeError(f"a place of fixed is {place!r}; give whole numbers for several PEs, or Wish(place, seconds)")
        if not pes:
            raise ValueError("a place of fixed has no PE; give at least one")
        return ",".join(str(number("a PE of fixed", pe, 0)) for pe in pes)
    return str(number("a PE of fixed", place, 0))


def _phases(database: _core.Database, phases: Phases) -> tuple[str] | list[tuple[int, list[float]]] | None:
    if phases is None:
        return None
    if isinstance(phases, str | os.PathLike):
        return (os.fspath(phases),)
    table = numbers("phases", phases, 2, database.sizes[1])
    if table.shape[1] == 0:
        raise ValueError("phases has no columns; give a column for each phase")
    return list(zip(database.objects()["id"].tolist(), table.tolist(), strict=True))


def _groups(groups: Groups) -> str | tuple[str] | None:
    if groups is None:
        return None
    expected = "give lines such as 'together node 0 1 2' or 'apart pe 4-7', or the file that has them"
    if isinstance(groups, str):
        # A line, or several lines.
        if groups.split()[:1] in (["together"], ["apart"]):
            return groups
        if not os.path.exists(groups):
            raise ValueError(f"groups is {groups!r}, which is no line and no file; {expected}")
        return (groups,)
    if isinstance(groups, os.PathLike):
        return (os.fspath(groups),)
    lines = list(groups) if isinstance(groups, Iterable) else [groups]
    wrong = next((line for line in lines if not isinstance(line, str)), None)
    if wrong is not None:
        raise TypeError(f"groups has the entry {wrong!r}; {expected}")
    return "\n".join(lines)


def _amount(what: str, amount: Amount) -> str | tuple[str] | list[int] | None:
    if amount is None:
        return None
    if isinstance(amount, os.PathLike):
        return (os.fspath(amount),)
    if isinstance(amount, str):
        if not amount[:1].isdigit() and not os.path.exists(amount.removesuffix(",exact")):
            form = "'4' or '4,exact'" if what == "max_objects" else "'80G'"
            raise ValueError(f"{what} is {amount!r}, which is no number and no file; give a number such as {form}, or a file")
        return amount
    if np.ndim(amount) == 0:
        return str(number(what, amount, 0))
    numbers: list[int] = integers(what, amount, 1).tolist()
    return numbers
