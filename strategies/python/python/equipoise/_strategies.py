"""Strategies that are written in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._arrays import check_length
from ._database import Database
from ._machine import Machine


class Strategy(Protocol):
    """A strategy that is written in Python."""

    def assign(self, database: Database, machine: Machine, seed: int) -> ArrayLike:
        """The PE of every object, in the order of `database.objects`."""


Balancer: TypeAlias = str | Strategy | type[Strategy] | Callable[[Database, Machine, int], ArrayLike]


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
        pes = np.asarray(assign(Database([database]), Machine._of(machine), seed))
        if pes.dtype.kind not in "iu" or pes.ndim != 1:
            raise TypeError(
                f"the strategy {name} returned an array of {pes.dtype} with {pes.ndim} dimensions; return a list with the "
                "number of a PE for each object"
            )
        check_length(f"the answer of the strategy {name}", pes, database.sizes[1])
        return np.ascontiguousarray(pes, dtype=np.int64)

    return str(name), call
