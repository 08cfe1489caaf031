"""Strategies that are written in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._database import Database
from ._machine import Machine


class Strategy(Protocol):
    """A strategy that is written in Python."""

    def assign(self, database: Database, machine: Machine, seed: int) -> ArrayLike:
        """The PE of every object, in the order of `database.objects`."""


Balancer: TypeAlias = str | Strategy | type[Strategy] | Callable[[Database, Machine, int], ArrayLike]


def _checked(name: str, answer: Any, sizes: tuple[int, int, int]) -> Any:
    """The answer of a strategy as an array, or the error that says what is wrong with it."""
    pes, objects, _ = sizes
    about = f"the assignment of {name} was rejected"
    expected = "return a list with the number of a PE for each object"
    try:
        found = np.asarray(answer)
    except ValueError:
        raise _core.EquipoiseError(f"{about}: it has rows of different lengths; {expected}") from None
    if found.ndim != 1:
        what = "None" if answer is None else f"an array with {found.ndim} dimensions"
        raise _core.EquipoiseError(f"{about}: it is {what}; {expected}")
    if len(found) != objects:
        raise _core.EquipoiseError(f"{about}: it has {len(found)} entries for {objects} objects; {expected}")
    if found.dtype.kind not in "iu":
        raise _core.EquipoiseError(f"{about}: it has values of type {found.dtype}; {expected}")
    wrong = np.flatnonzero((found < 0) | (found >= pes))
    if len(wrong):
        raise _core.EquipoiseError(
            f"{about}: object {wrong[0]} is on PE {found[wrong[0]]}, but PEs are 0 to {pes - 1}"
        )
    return np.ascontiguousarray(found, dtype=np.int64)


def balancer(given: Any) -> tuple[str, Any | None]:
    """The spec of a strategy, or the name and the function of one that is written in Python."""
    if isinstance(given, str):
        return given, None
    if isinstance(given, type):
        given = given()
    assign = getattr(given, "assign", given)
    if not callable(assign):
        raise TypeError(
            f"a balancer cannot be a {type(given).__name__}; give a spec such as 'GreedyLB', a function of "
            "(database, machine, seed), or an object with the method assign"
        )
    name = getattr(given, "name", None) or getattr(given, "__name__", None) or type(given).__name__

    def call(database: _core.Database, machine: _core.Machine, seed: int) -> Any:
        return _checked(str(name), assign(Database([database]), Machine._of(machine), seed), database.sizes)

    return str(name), call
