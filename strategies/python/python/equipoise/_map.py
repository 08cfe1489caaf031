"""Mappings of tasks to PEs."""

from __future__ import annotations

import json
import os
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core, _graphs
from ._arrays import integers, needs, number
from ._arrays import seed as seed_of
from ._limits import Amount, Fixed, Groups, Phases, limits
from ._machine import Machine, core
from ._strategies import Balancer
from ._strategies import balancer as balancer_of


class Mapping:
    """The PE of every task, and what the mapping costs."""

    def __init__(self, found: _core.Mapping, name: str) -> None:
        self._core = found
        self._name = name

    @cached_property
    def pe(self) -> NDArray[np.int64]:
        """The PE of every task."""
        return self._core.pe

    @cached_property
    def start(self) -> NDArray[np.int64]:
        """The PE of every task where the search started."""
        return self._core.start

    @cached_property
    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._core.document())
        return document

    @property
    def costs(self) -> dict[str, Any]:
        """The costs of the mapping, such as `hop_bytes`, `hops_per_byte`, `max_link_bytes` and `imbalance`."""
        costs: dict[str, Any] = self._document["after"]
        return costs

    @property
    def start_costs(self) -> dict[str, Any]:
        """The same costs where the search started."""
        costs: dict[str, Any] = self._document["before"]
        return costs

    @property
    def seconds(self) -> float:
        """The running time of the strategy."""
        return float(self._document["seconds"])

    @property
    def notes(self) -> dict[str, float]:
        """What the strategy reports of its search."""
        return dict(self._document["notes"])

    @property
    def summary(self) -> str:
        """One sentence that compares the mapping with the start, as `equipoise map` has it."""
        return self._core.summary

    def explain(self, most: int = 8) -> dict[str, Any]:
        """What changed from the start to the mapping: the lists of `equipoise explain --format json`.

        Parameters
        ----------
        most
            The largest number of edges, and of links, in the lists.

        Returns
        -------
        dict
            `distances` and `levels` are the bytes by distance and by level of the machine. `far` are the edges with the most hop-bytes,
            without those between the closest PEs. `hot_before` and `hot_after` are the links that take the longest, with `name`,
            `bytes` and `seconds`.
        """
        document: dict[str, Any] = json.loads(self._core.explain(number("most", most, 0)))
        return document

    def write(self, path: str | os.PathLike[str], launcher: str | None = None, *, slots: int | None = None) -> None:
        """Writes the mapping, or a launcher's file.

        Parameters
        ----------
        path
            The file; an existing one is replaced as a whole.
        launcher
            A format such as ``"torchrun"``, ``"mpich"`` or ``"slurm"``; the page *Launchers* of the book lists all. Rank i is task i. By
            default, the file has the PE of a task per line.
        slots
            The largest number of ranks on a PE in a launcher's file; by default 1.

        Raises
        ------
        ValueError
            If there is no such format, it cannot express the mapping, or a PE has more tasks than slots.
        EquipoiseError
            If the file cannot be written.
        """
        needs("slots", slots, {"launcher": launcher})
        self._core.write(os.fspath(path), launcher, _slots(slots))

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes a report for people.

        Parameters
        ----------
        path
            A name that ends in `.html` (a page for any browser) or `.json` (the numbers of the page).
        """
        title = f"{self._name} on {self._document['topology']}"
        self._core.report(os.fspath(path), title)

    def __repr__(self) -> str:
        return f"<Mapping of {len(self.pe)} tasks to {self._document['topology']}: {self.summary}>"


def map(
    graph: Any,
    topology: Machine | str,
    balancer: Balancer = "PoiseLB",
    loads: ArrayLike | None = None,
    fixed: Fixed = None,
    seed: int = 0,
    *,
    start: ArrayLike | str | os.PathLike[str] | None = None,
    slots: int | None = None,
    max_objects: Amount = None,
    memory: Amount = None,
    object_bytes: ArrayLike | None = None,
    groups: Groups = None,
    phases: Phases = None,
    max_moves: int | str | None = None,
) -> Mapping:
    """Maps the tasks of a graph to the PEs of a machine.

    Parameters
    ----------
    graph
        Which task sends how many bytes to which: a `scipy.sparse` matrix or a square array (entry [i, j]: bytes from i to j), a
        NetworkX graph (edge attribute `bytes` or `weight`; tasks are in the order of its nodes; edges without direction
        count both ways), a dictionary `{(sender, receiver): bytes}`, edges `(sender, receiver[, bytes[, messages]])`, a structured
        array or a table of pandas with the columns `from` and `to`, or `sender` and `receiver`, and if needed `bytes` and
        `messages`, a `Database` (its first step), or the name of a file or a generator such as ``"mesh:8x8"``. A list always
        has edges, and an array that is square is always a matrix.
    topology
        A `Machine` or its spec.
    balancer
        The spec of a strategy, or a strategy that is written in Python: a function of `(database, machine, seed)`, or a
        class or object with such a method `assign`. It returns the PE of every object of its database; objects whose
        `migratable` is false stay where they are. With constraints, objects that must be together are one object there.
    loads
        The load of every task in seconds; by default that of the file or the database, and 1 for graphs without loads.
    fixed
        Where tasks must be: ``{task: place}``, a list with a PE or None for each task, or a file as of `--fixed`. A place
        is a PE, several PEs such as ``(3, 2)``, ``"0-3,8"``, ``"node:2"`` or ``"!5"``, or a `Wish` such as
        ``Wish("node:2", 0.5)``.
    seed
        The seed of the random number generator.
    start
        The PE of every task where the search starts, or a file: a mapping, or a launcher's file such as ``"torchrun=ranks.txt"``. By
        default task i is on PE i, or tasks are in blocks if there are more tasks than PEs.
    slots
        The slots of each PE in the launcher's file that `start` names, as of `Mapping.write`; by default as few as the tasks need.
    max_objects
        The largest number of tasks on each PE, or one for each PE; ``"4,exact"``: exactly 4.
    memory
        The bytes that each PE has for tasks, or a number for each PE; also ``"80G"``.
    object_bytes
        The size of every task, for `memory` and the costs of migrations.
    groups
        Tasks that must be together or apart: a line such as ``"together node 0 1 2"``, a list of such lines, or a file.
    phases
        The load of every task in each phase of a period, in seconds: a row per task and a column per phase, or a file as of
        `--phases`. What counts is the sum over phases of the slowest PE (`phases_seconds` of `costs`).
    max_moves
        The largest number of tasks that may leave the PE where they start, or a part of them such as ``"5%"``; not with
        `max_objects`, `memory`, `groups` or `phases`. With `fixed` and with recorded constraints, more tasks may move.

    The constraints that a database has recorded are kept, too. An argument takes the place of those of its kind.

    Returns
    -------
    Mapping
        With `pe`, `costs`, `explain`, `write` and `report`.

    Raises
    ------
    ValueError
        If an argument is wrong, the strategy cannot be used with this machine, or no placement can keep the constraints.
    TypeError
        If an argument has a wrong type.
    EquipoiseError
        If a file cannot be used, or the answer of a strategy is impossible. Exceptions of a Python strategy are raised
        unchanged.
    """
    database, name = _graphs.database(graph, loads, object_bytes)
    begin: Any = None
    if isinstance(start, str | os.PathLike):
        begin = (start, _slots(slots))
    else:
        needs("slots", slots, {"the file of a launcher as start": None})
        if start is not None:
            begin = integers("start", start, 1, database.sizes[1])
    keep = limits(database, fixed, groups, max_objects, memory, phases, max_moves)
    found = _core.map(database, core(topology), balancer_of(balancer), keep, seed_of(seed), begin)
    return Mapping(found, name)


def _slots(given: int | None) -> int:
    """The slots of each PE in a launcher's file."""
    return 1 if given is None else number("slots", given, 1, 2**32 - 1)
