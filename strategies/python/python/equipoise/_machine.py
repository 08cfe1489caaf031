"""Machines: PEs and the distances between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._core import Machine as Core


class Machine:
    """A machine: PEs and the distances between them. Machines with the same spec are equal.

    Parameters
    ----------
    spec
        Such as ``"torus:4x4x4"`` or ``"flat:4*flat:8"``; the page *Machines* of the book lists all.
    """

    _core: Core

    def __init__(self, spec: str) -> None:
        self._core = Core(spec)

    @classmethod
    def _of(cls, core: Core) -> Machine:
        machine = cls.__new__(cls)
        machine._core = core
        return machine

    @property
    def spec(self) -> str:
        """The spec."""
        return self._core.spec

    @property
    def pes(self) -> int:
        """The number of PEs."""
        return self._core.pes

    def distance(self, a: int, b: int) -> int:
        """The distance between two PEs, in hops unless the machine defines others."""
        return self._core.distance(self._pe(a), self._pe(b))

    def distances_from(self, a: int) -> NDArray[np.uint32]:
        """The distances from a PE to all PEs."""
        return self._core.distances_from(self._pe(a))

    def _pe(self, pe: int) -> int:
        """The number of a PE; any other raises the error of a PE that does not exist."""
        if not 0 <= pe < self.pes:
            raise IndexError(f"there is no PE {pe} in {self.spec}; PEs are 0 to {self.pes - 1}")
        return pe

    def distances(self) -> NDArray[np.uint32]:
        """The distances between all PEs, as a square array."""
        return self._core.all_distances().reshape(self.pes, self.pes)

    @property
    def node_of(self) -> NDArray[np.int64]:
        """The node of every PE."""
        return self._core.node_of

    def __eq__(self, other: object) -> bool:
        return self.spec == other.spec if isinstance(other, Machine) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.spec)

    def __repr__(self) -> str:
        return f"Machine({self.spec!r})"


def core(topology: Machine | str) -> Core:
    """The compiled machine of an argument ``topology``."""
    if isinstance(topology, Machine):
        return topology._core
    if isinstance(topology, str):
        return Core(topology)
    raise TypeError(f"topology is a {type(topology).__name__}; give a Machine or a spec such as 'torus:4x4x4'")
