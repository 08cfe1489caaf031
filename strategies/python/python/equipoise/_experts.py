"""Places replicas of the experts of a model, and judges plans."""

from __future__ import annotations

import json
import os
import warnings
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import integers, loads, needs, number, numbers
from ._machine import Machine, core


def slots_of(physical_to_logical: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The slots of every expert, ascending; -1 fills rows up."""
    layers, experts = counts.shape
    slots = np.full((layers, experts, int(counts.max())), -1, dtype=np.int64)
    for layer, row in enumerate(physical_to_logical):
        order = np.argsort(row, kind="stable")
        rank = np.arange(len(row)) - np.concatenate(([0], np.cumsum(counts[layer])))[row[order]]
        slots[layer, row[order], rank] = order
    return slots


class Plan:
    """Where the replicas of experts are, and what the plan costs. All arrays have a row per layer."""

    def __init__(self, found: _core.Plan) -> None:
        self._core = found

    @cached_property
    def physical_to_logical(self) -> NDArray[np.int64]:
        """The expert of every slot, ``[layer, slot]``. The slots of a GPU are adjacent, and GPUs are in PE order."""
        return self._core.physical_to_logical

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of replicas, ``[layer, expert]``."""
        return self._core.counts

    @cached_property
    def logical_to_physical(self) -> NDArray[np.int64]:
        """The slots of every expert, ``[layer, expert, replica]``; -1 fills rows up."""
        return slots_of(self.physical_to_logical, self.counts)

    @property
    def topology(self) -> str:
        """The spec of the machine."""
        return self._core.topology

    @cached_property
    def _documents(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        ours, eplb = self._core.documents()
        return json.loads(ours), json.loads(eplb)

    @property
    def costs(self) -> list[dict[str, Any]]:
        """The costs of each layer, such as `max_over_average` and, with a previous plan, `moves`."""
        return self._documents[0]

    @property
    def eplb_costs(self) -> list[dict[str, Any]]:
        """The same costs of the plan that EPLB makes anew."""
        return self._documents[1]

    @property
    def summary(self) -> dict[str, Any]:
        """The costs of all layers, by the names of the `summary` in the document of `equipoise experts`.

        `mean_max_over_average` and `worst_max_over_average` are of all layers; the others, such as `moves` with a previous plan,
        are sums.
        """
        ratios = [layer["max_over_average"] for layer in self.costs]
        of_layer = ("layer", "max_load", "average_load", "max_over_average")
        sums = {name: sum(layer[name] for layer in self.costs) for name in self.costs[0] if name not in of_layer}
        return {"mean_max_over_average": sum(ratios) / len(ratios), "worst_max_over_average": max(ratios), **sums}

    def to_pandas(self) -> Any:
        """The costs of all layers as a `pandas.DataFrame`; columns that begin with `eplb_` are those of EPLB's plan."""
        import pandas as pd

        eplb = pd.DataFrame(self.eplb_costs).drop(columns=["layer", "average_load"]).add_prefix("eplb_")
        return pd.concat([pd.DataFrame(self.costs), eplb], axis=1)

    @cached_property
    def transfers(self) -> NDArray[np.int64] | None:
        """The replicas to copy from the previous plan: rows of layer, expert, from PE (-1: from elsewhere), to PE.

        None without a previous plan. A copy comes from the nearest PE that has the expert.
        """
        return self._core.transfers

    def write(self, path: str | os.PathLike[str], *, sglang: bool = False) -> None:
        """Writes the plan as the JSON document of `equipoise experts`, or as `--init-expert-location` of SGLang reads it."""
        self._core.write(path, sglang)

    def __repr__(self) -> str:
        layers, slots = self.physical_to_logical.shape
        worst = self.summary["worst_max_over_average"]
        return f"<Plan of {layers} layers with {slots} slots on {self.topology}: max/avg at most {worst:.4f}>"


def experts(
    weight: ArrayLike,
    replicas: int,
    topology: Machine | str,
    previous: Plan | ArrayLike | str | os.PathLike[str] | None = None,
    *,
    groups: int = 1,
    sources: ArrayLike | None = None,
    gamma: float | None = None,
    tolerance: float | None = None,
    expert_bytes: int | str | None = None,
) -> Plan:
    """Decides how many replicas each expert of a model has, and where they are.

    Parameters
    ----------
    weight
        The load of every expert: a row per layer and a column per expert, or one row.
    replicas
        The slots of all PEs in a layer: a multiple of the PEs, and at least the number of experts.
    topology
        A `Machine` or its spec; a PE is a GPU.
    previous
        The plan in use, from which few replicas move away: a `Plan`, the experts of its slots, or its file. A `Plan`
        and a file name their machine, so they may be for another number of PEs or slots.
    groups
        The number of groups of experts with consecutive numbers. If the nodes divide it, all replicas of a group are on
        one node.
    sources
        The tokens from every node to every expert: a row per node, or for each layer a row per node.
    gamma
        With `previous` and `sources`, the cost of moving all replicas, relative to that of messages to random places; by
        default 0.1.
    tolerance
        With `previous`, the allowed excess of the largest load over that of a plan that EPLB makes anew; by default 0.005.
    expert_bytes
        With `previous`, the bytes of a replica, for `bytes_moved`; also ``"42M"``, which is the default.

    Returns
    -------
    Plan
        With `physical_to_logical`, `logical_to_physical`, `counts` and `costs`.

    Raises
    ------
    ValueError
        If an argument is wrong, also if its shape does not fit, or there is no plan with these numbers.
    EquipoiseError
        If the file of the previous plan cannot be used.

    Warns
    -----
    UserWarning
        If groups are not kept on nodes, or the previous plan was made for another number of PEs.
    """
    needs("gamma", gamma, {"previous": previous, "sources": sources})
    needs("tolerance", tolerance, {"previous": previous})
    needs("expert_bytes", expert_bytes, {"previous": previous})
    return _plan(weight, replicas, topology, None, previous, groups, sources, gamma, tolerance, expert_bytes)


def evaluate_plan(
    plan: Plan | ArrayLike | str | os.PathLike[str],
    weight: ArrayLike,
    topology: Machine | str | None = None,
    previous: Plan | ArrayLike | str | os.PathLike[str] | None = None,
    *,
    groups: int = 1,
    sources: ArrayLike | None = None,
    expert_bytes: int | str | None = None,
) -> Plan:
    """Judges a plan that was made elsewhere or for other loads.

    Parameters
    ----------
    plan
        A `Plan`, the experts of its slots (a row per layer, or one row), or its file.
    topology
        A `Machine` or its spec; by default that of the plan. An array names none.
    weight, previous, groups, sources, expert_bytes
        As for `experts`.

    Returns
    -------
    Plan
        The same slots, with the costs for these loads.

    Raises
    ------
    ValueError
        If an argument is wrong, or the plan does not fit the loads or the machine.
    EquipoiseError
        If the file of a plan cannot be used.

    Warns
    -----
    UserWarning
        As `experts`, and if the plan was made for another number of PEs.
    """
    needs("expert_bytes", expert_bytes, {"previous": previous})
    slots, spec = _slots("plan", plan)
    if topology is None:
        if not spec:
            raise ValueError("the plan names no machine; give topology")
        try:
            topology = Machine(spec)
        except ValueError as error:
            raise ValueError(f"the plan names a machine that cannot be used: {error}; give topology") from None
    return _plan(weight, slots.shape[1], topology, (slots, spec), previous, groups, sources, None, None, expert_bytes)


def _plan(
    weight: ArrayLike,
    replicas: int,
    topology: Machine | str,
    judged: tuple[NDArray[np.int64], str] | None,
    previous: Plan | ArrayLike | str | os.PathLike[str] | None,
    groups: int,
    sources: ArrayLike | None,
    gamma: float | None,
    tolerance: float | None,
    expert_bytes: int | str | None,
) -> Plan:
    """Judges the plan `judged`, or makes one if it is None."""
    if expert_bytes is None:
        expert_bytes = "42M"
    found = _core.experts(
        loads(_rows(weight)),
        number("replicas", replicas, 1),
        core(topology),
        judged,
        None if previous is None else _slots("previous", previous),
        number("groups", groups, 1),
        None if sources is None else numbers("sources", sources, 2),
        None if gamma is None else float(numbers("gamma", gamma, 0)),
        None if tolerance is None else float(numbers("tolerance", tolerance, 0)),
        expert_bytes if isinstance(expert_bytes, str) else str(number("expert_bytes", expert_bytes, 0)),
    )
    for warning in found.warnings:
        warnings.warn(warning, stacklevel=3)
    return Plan(found)


def _slots(what: str, plan: Plan | ArrayLike | str | os.PathLike[str]) -> tuple[NDArray[np.int64], str]:
    """The experts of the slots of a plan, and the spec of its machine, which is empty if it names none."""
    if isinstance(plan, Plan):
        return plan.physical_to_logical, plan.topology
    if isinstance(plan, str | os.PathLike):
        return _core.read_plan(plan)
    return integers(what, _rows(plan), 2), ""


def _rows(values: ArrayLike) -> ArrayLike:
    """The rows; a single row has one layer."""
    try:
        found = np.asarray(values)
    except ValueError:
        # Rows of different lengths, which the check of the argument describes.
        return values
    return found[np.newaxis] if found.ndim == 1 else found
