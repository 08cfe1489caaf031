"""Constraints: the arguments `fixed`, `groups`, `max_objects` and `memory`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._arrays import check_length, integers, number

Place: TypeAlias = int | str | Iterable[int] | tuple["int | str | Iterable[int]", float]
Fixed: TypeAlias = Mapping[int, Place] | Iterable[int | None] | os.PathLike[str] | None
Groups: TypeAlias = Iterable[str] | os.PathLike[str] | None
Amount: TypeAlias = ArrayLike | os.PathLike[str] | None


def limits(
    database: _core.Database, fixed: Fixed, groups: Groups, max_objects: Amount, memory: Amount
) -> dict[str, Any]:
    """The constraints as the compiled module takes them."""
    return {
        "fixed": _fixed(database, fixed),
        "groups": _groups(groups),
        "max_objects": _amount("max_objects", max_objects),
        "memory": _amount("memory", memory),
    }


def _fixed(database: _core.Database, fixed: Fixed) -> str | tuple[str] | None:
    if fixed is None:
        return None
    if isinstance(fixed, str | os.PathLike):
        return (os.fspath(fixed),)
    if isinstance(fixed, Mapping):
        return "\n".join(f"{number('a task of fixed', task, 0)} {_place(place)}" for task, place in fixed.items())
    places = np.array([-1 if pe is None else pe for pe in fixed])
    check_length("fixed", places, database.sizes[1])
    ids = database.objects()["id"]
    return "\n".join(f"{ids[at]} {_place(int(pe))}" for at, pe in enumerate(places) if pe >= 0)


def _place(place: Any) -> str:
    """The words of a place: `3`, `0,1,8`, `node:2`, `!5`, and the seconds of a wish."""
    if isinstance(place, str):
        return place
    if isinstance(place, tuple) and len(place) == 2 and isinstance(place[1], float):
        return f"{_place(place[0])} {place[1]!r}"
    if isinstance(place, Iterable):
        return ",".join(str(number("a PE of fixed", pe, 0)) for pe in place)
    return str(number("a PE of fixed", place, 0))


def _groups(groups: Groups) -> str | tuple[str] | None:
    if groups is None:
        return None
    if isinstance(groups, str | os.PathLike):
        return (os.fspath(groups),)
    return "\n".join(groups)


def _amount(what: str, amount: Amount) -> str | list[int] | None:
    if amount is None:
        return None
    if isinstance(amount, str | os.PathLike):
        return os.fspath(amount)
    if np.ndim(amount) == 0:
        return str(number(what, amount, 0))
    numbers: list[int] = integers(what, amount, 1).tolist()
    return numbers
