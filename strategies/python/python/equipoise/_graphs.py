"""Task graphs from matrices, NetworkX graphs, dictionaries, tables and lists of edges."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import integers, numbers
from ._database import Database

ACCEPTED = (
    "give a square matrix, a graph of NetworkX, {(sender, receiver): bytes}, edges (sender, receiver), (.., bytes) or "
    "(.., bytes, messages), or a table with the columns from and to, or sender and receiver, and if needed bytes and messages"
)


class Edges(NamedTuple):
    """The edges of a number of tasks as columns."""

    tasks: int
    senders: ArrayLike
    receivers: ArrayLike
    bytes: ArrayLike
    messages: ArrayLike | None = None
    """None: one for each edge."""
    entry: Callable[[int], str] | None = None
    """The name of the bytes of an edge, for errors."""


def database(graph: Any, loads: ArrayLike | None, sizes: ArrayLike | None) -> tuple[_core.Database, str]:
    """The tasks of a graph, and the name of the graph."""
    found, name = _database(graph)
    if loads is None and sizes is None:
        return found, name
    objects = found.sizes[1]
    load = None if loads is None else numbers("loads", loads, 1, objects)
    size = None if sizes is None else integers("object_bytes", sizes, 1, objects)
    return found.with_objects(load, size), name


def _database(graph: Any) -> tuple[_core.Database, str]:
    if not isinstance(graph, Database | str | os.PathLike):
        edges = _edges(graph)
        volume = integers("bytes", edges.bytes, 1, entry=edges.entry)
        messages = np.ones(len(volume), np.int64) if edges.messages is None else integers("messages", edges.messages, 1)
        ends = integers("tasks", edges.senders, 1), integers("tasks", edges.receivers, 1)
        return _core.tasks(edges.tasks, *ends, volume, messages), "graph"
    if isinstance(graph, Database):
        steps, name = graph._cores, graph.program or "database"
    else:
        steps, name = _core.read(graph, graph=True, is_file=isinstance(graph, os.PathLike))[0], os.fspath(graph)
    if len(steps) > 1:
        warnings.warn(
            f"{name} holds {len(steps)} steps; mapping the first, step {steps[0].step}; choose another with read(..).steps",
            stacklevel=4,
        )
    return steps[0], name


def _edges(graph: Any) -> Edges:
    if hasattr(graph, "tocoo"):
        coo = graph.tocoo()
        return _matrix(coo.shape, coo.row, coo.col, coo.data)
    if hasattr(graph, "is_directed") and hasattr(graph, "edges"):
        return _networkx(graph)
    if isinstance(graph, Mapping):
        return _dictionary(graph)
    if isinstance(graph, np.ndarray) and graph.dtype.names is not None:
        return _table(graph, list(graph.dtype.names))
    if hasattr(graph, "columns") and hasattr(graph, "to_numpy"):
        return _table(graph, list(graph.columns))
    if isinstance(graph, np.ndarray) and graph.ndim == 2 and (graph.shape[0] == graph.shape[1] or graph.shape[1] > 4):
        row, column = np.nonzero(graph)
        return _matrix(graph.shape, row, column, graph[row, column])
    return _rows(graph)


def _matrix(shape: tuple[int, ...], row: NDArray[Any], column: NDArray[Any], volume: NDArray[Any]) -> Edges:
    if len(shape) != 2 or shape[0] != shape[1]:
        size = " x ".join(map(str, shape))
        raise ValueError(f"the matrix has the size {size}; give a square one with a row and a column for each task")
    return Edges(shape[0], row, column, volume, entry=lambda at: f"the entry [{row[at]}, {column[at]}] of the matrix")


def _networkx(graph: Any) -> Edges:
    nodes = list(graph.nodes)
    number = {node: at for at, node in enumerate(nodes)}
    rows = []
    for a, b, data in graph.edges(data=True):
        volume = data.get("bytes", data.get("weight", 1))
        messages = data.get("messages", 1)
        rows.append((number[a], number[b], volume, messages))
        if not graph.is_directed():
            rows.append((number[b], number[a], volume, messages))
    columns = [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0, np.int64)] * 4
    senders, receivers, volumes, counts = columns

    def entry(at: int) -> str:
        return f"the bytes of the edge ({nodes[senders[at]]!r}, {nodes[receivers[at]]!r})"

    return Edges(len(nodes), senders, receivers, volumes, counts, entry)


def _dictionary(graph: Mapping[Any, Any]) -> Edges:
    keys = list(graph)
    wrong = next((key for key in keys if not isinstance(key, tuple) or len(key) != 2), None)
    if wrong is not None:
        raise TypeError(f"the graph has the key {wrong!r}, which is no pair of tasks; {ACCEPTED}")
    ends = integers("tasks", keys or np.empty((0, 2), int), 2)
    return _listed(ends, list(graph.values()), None, lambda at: f"the value of {keys[at]}")


def _table(table: Any, names: list[Any]) -> Edges:
    pairs = [pair for pair in (("from", "to"), ("sender", "receiver")) if set(pair) <= set(names)]
    if not pairs:
        raise TypeError(f"the table of edges has the columns {', '.join(map(str, names))}; {ACCEPTED}")
    size = next((name for name in ("bytes", "weight") if name in names), "bytes")
    known = (*pairs[0], size, "messages", "from_pe", "to_pe")
    column = {name: np.asarray(table[name]) for name in known if name in names}
    # PEs, which edges of databases may begin or end at, are no tasks.
    of_tasks = np.ones(len(table), bool)
    for name in ("from_pe", "to_pe"):
        if name in column:
            of_tasks &= ~column[name].astype(bool)
    kept = {name: values[of_tasks] for name, values in column.items()}
    rows = np.flatnonzero(of_tasks)
    ends = np.stack([integers(name, kept[name], 1) for name in pairs[0]], axis=1)
    return _listed(ends, kept.get(size), kept.get("messages"), lambda at: f"{size} in row {rows[at]}")


def _rows(graph: ArrayLike | Iterable[Any]) -> Edges:
    if not isinstance(graph, np.ndarray):
        if not isinstance(graph, Iterable):
            raise TypeError(f"a graph cannot be a {type(graph).__name__}; {ACCEPTED}")
        graph = list(graph)
    try:
        rows = np.asarray(graph)
    except ValueError:
        raise ValueError(f"the edges have different lengths; {ACCEPTED}") from None
    if rows.size == 0:
        rows = np.empty((0, 2), int)
    if rows.ndim != 2 or not 2 <= rows.shape[1] <= 4:
        raise ValueError(f"the edges have the shape {rows.shape}; {ACCEPTED}")
    if rows.dtype.kind == "O":
        raise TypeError("the edges have other values than numbers of at most 64 bits; give whole numbers")
    volume, messages = (rows[:, at] if at < rows.shape[1] else None for at in (2, 3))
    return _listed(integers("tasks", rows[:, :2], 2), volume, messages)


def _listed(
    ends: NDArray[np.int64],
    volume: ArrayLike | None,
    messages: ArrayLike | None,
    entry: Callable[[int], str] | None = None,
) -> Edges:
    """Edges whose ends say how many tasks there are."""
    if len(ends) == 0:
        raise ValueError("there are no edges, so the number of tasks is unknown; give an edge, or a matrix")
    volume = np.ones(len(ends), np.int64) if volume is None else volume
    return Edges(int(ends.max()) + 1, ends[:, 0], ends[:, 1], volume, messages, entry)
