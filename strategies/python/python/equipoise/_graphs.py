"""Task graphs from sparse matrices, arrays, NetworkX graphs and edge lists."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import integers, numbers
from ._database import Database

Columns: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


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
        number, (sender, receiver, volume, messages) = columns(graph)
        ends = integers("tasks", sender, 1), integers("tasks", receiver, 1)
        return _core.tasks(number, *ends, integers("bytes", volume, 1), integers("messages", messages, 1)), "graph"
    if isinstance(graph, Database):
        steps, name = graph._cores, graph.program or "database"
    else:
        steps, name = _core.read(graph, graph=True)[0], os.fspath(graph)
    if len(steps) > 1:
        warnings.warn(
            f"{name} holds {len(steps)} steps; mapping the first, step {steps[0].step}; choose another with read(..).steps",
            stacklevel=4,
        )
    return steps[0], name


def columns(graph: Any) -> tuple[int, Columns]:
    """The number of tasks and the columns sender, receiver, bytes and messages of the edges."""
    if hasattr(graph, "tocoo"):
        coo = graph.tocoo()
        return _square(coo.shape), (coo.row, coo.col, coo.data, np.ones(len(coo.data), np.int64))
    if hasattr(graph, "is_directed") and hasattr(graph, "edges"):
        return _networkx(graph)
    if isinstance(graph, np.ndarray) and graph.ndim == 2 and (graph.shape[0] == graph.shape[1] or graph.shape[1] > 4):
        row, column = np.nonzero(graph)
        return _square(graph.shape), (row, column, graph[row, column], np.ones(len(row), np.int64))
    return _edge_list(graph)


def _square(shape: tuple[int, ...]) -> int:
    if len(shape) != 2 or shape[0] != shape[1]:
        size = " x ".join(map(str, shape))
        raise ValueError(f"the matrix has the size {size}; give a square one with a row and a column for each task")
    return shape[0]


def _networkx(graph: Any) -> tuple[int, Columns]:
    number = {node: at for at, node in enumerate(graph.nodes)}
    rows = []
    for a, b, data in graph.edges(data=True):
        volume = data.get("bytes", data.get("weight", 1))
        messages = data.get("messages", 1)
        rows.append((number[a], number[b], volume, messages))
        if not graph.is_directed():
            rows.append((number[b], number[a], volume, messages))
    found = [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0, np.int64)] * 4
    return len(number), (found[0], found[1], found[2], found[3])


def _edge_list(graph: ArrayLike | Iterable[Any]) -> tuple[int, Columns]:
    expected = "give a square matrix, a graph, or edges (sender, receiver), (.., bytes) or (.., bytes, messages)"
    if not isinstance(graph, np.ndarray):
        if not isinstance(graph, Iterable):
            raise TypeError(f"a graph cannot be a {type(graph).__name__}; {expected}")
        graph = list(graph)
    try:
        rows = np.asarray(graph)
    except ValueError:
        raise ValueError(f"the edges have different lengths; {expected}") from None
    if rows.ndim != 2 or not 2 <= rows.shape[1] <= 4 or len(rows) == 0:
        raise ValueError(f"the edges have the shape {rows.shape}; {expected}")
    ones = np.ones(len(rows), np.int64)
    more = [rows[:, at] if at < rows.shape[1] else ones for at in (2, 3)]
    ends = integers("tasks", rows[:, :2].reshape(-1), 1)
    return int(ends.max()) + 1, (rows[:, 0], rows[:, 1], more[0], more[1])
