"""Databases of recorded load-balancing steps as NumPy arrays, pandas tables and SciPy matrices."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import integers, number


class Frames(NamedTuple):
    """The tables of a database: `pandas.DataFrame` each."""

    objects: Any
    edges: Any
    pes: Any


def _structured(columns: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """A structured array with these fields."""
    length = len(next(iter(columns.values())))
    table = np.empty(length, dtype=[(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        table[name] = column
    return table


class Database:
    """Recorded load-balancing steps, which `read` returns and strategies get.

    `objects`, `edges` and `pes` are those of the first step; `steps` has all steps.
    """

    def __init__(self, cores: Sequence[_core.Database], program: str = "", topology: str = "") -> None:
        self._cores = list(cores)
        self.program = program
        """The name of the program; empty if unknown."""
        self.topology = topology
        """The spec of the recorded machine; empty if unknown."""

    @property
    def _core(self) -> _core.Database:
        return self._cores[0]

    @cached_property
    def steps(self) -> list[Database]:
        """A database for each step."""
        return [Database([core], self.program, self.topology) for core in self._cores]

    @property
    def step(self) -> int:
        """The number of the step."""
        return self._core.step

    @property
    def arrays(self) -> list[str]:
        """The names of the chare arrays, by the field `array` of objects."""
        return self._core.arrays

    @property
    def communication_recorded(self) -> bool:
        """Whether communication was recorded; if not, there are no edges."""
        return self._core.communication_recorded

    @cached_property
    def objects(self) -> NDArray[Any]:
        """The objects: a structured array.

        Its fields are `id`, `array`, `index0` and so on, `load_seconds`, `bytes` (-1: not measured), `pe` and
        `migratable`.
        """
        return _structured(self._core.objects())

    @cached_property
    def edges(self) -> NDArray[Any]:
        """The communication: a structured array with an entry per sender and receiver.

        Its fields are `from` and `to` (positions in `objects`, or PEs where `from_pe` or `to_pe` is true), `messages`
        and `bytes`.
        """
        return _structured(self._core.edges())

    @cached_property
    def pes(self) -> NDArray[Any]:
        """The PEs: a structured array.

        Its fields are `speed`, `wall_seconds`, `idle_seconds`, `background_seconds` and `available`.
        """
        return _structured(self._core.pes())

    def pe_loads(self, pe: ArrayLike | None = None) -> NDArray[np.float64]:
        """The load of every PE in seconds, with background and speed.

        Parameters
        ----------
        pe
            The PE of every object; by default the recorded one.
        """
        return self._core.pe_loads(integers("pe", self.objects["pe"] if pe is None else pe, 1))

    def remap(self, pes: int) -> Database:
        """The same steps on another number of PEs, with the objects in blocks."""
        pes = number("pes", pes, 1)
        return Database([core.remap(pes) for core in self._cores], self.program)

    def to_pandas(self) -> Frames:
        """The objects, edges and PEs of the step as pandas tables.

        Returns
        -------
        Frames
            With the fields `objects`, `edges` and `pes`; sizes that were not measured are missing values.
        """
        import pandas as pd

        objects = pd.DataFrame(self._core.objects())
        objects["bytes"] = objects["bytes"].astype("Int64").mask(objects["bytes"] < 0)
        return Frames(objects, pd.DataFrame(self._core.edges()), pd.DataFrame(self._core.pes()))

    def to_scipy(self, values: Literal["bytes", "messages"] = "bytes") -> Any:
        """The communication between objects as a `scipy.sparse.csr_array`.

        Parameters
        ----------
        values
            What the entry (sender, receiver) counts.

        Notes
        -----
        Edges from and to PEs are left out, because PEs have no row.
        """
        from scipy.sparse import coo_array

        edges = self.edges[~(self.edges["from_pe"] | self.edges["to_pe"])]
        number = len(self.objects)
        if values not in ("bytes", "messages"):
            raise ValueError(f"edges have no {values!r}; give 'bytes' or 'messages'")
        return coo_array((edges[values], (edges["from"], edges["to"])), shape=(number, number)).tocsr()

    def __repr__(self) -> str:
        pes, objects, edges = self._core.sizes
        name = f"{self.program!r}, " if self.program else ""
        more = f"{len(self._cores)} steps from {self.step}" if len(self._cores) > 1 else f"step {self.step}"
        return f"<Database {name}{more}: {objects} objects, {edges} edges, {pes} PEs>"


def read(path: str | os.PathLike[str], step: int | None = None, steps: int | None = None) -> Database:
    """Reads recorded load-balancing steps.

    Parameters
    ----------
    path
        A database of Equipoise, a dump of Charm++ (with or without `.STEP`), or LB data of vt.
    step
        The first step; by default the first in the file.
    steps
        The number of steps; by default 1 with `step`, else all.

    Returns
    -------
    Database
        Its `objects` and `edges` are NumPy arrays.

    Raises
    ------
    ValueError
        If the file has no such step.
    EquipoiseError
        If the file cannot be opened, or its content is no database.
    """
    if step is not None:
        step, steps = number("step", step, 0), 1 if steps is None else steps
    if steps is not None:
        steps = number("steps", steps, 1)
    cores, program, topology, ignored = _core.read(path, step, steps)
    for warning in ignored:
        warnings.warn(f"{os.fspath(path)} {warning}", stacklevel=2)
    return Database(cores, program, topology)
