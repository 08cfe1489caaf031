"""EPLB, the published load balancer for experts, with its names and return values: an independent implementation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import loads, number

__all__ = ["rebalance_experts"]


def rebalance_experts(
    weight: ArrayLike, num_replicas: int, num_groups: int, num_nodes: int, num_gpus: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """EPLB's plan.

    Parameters
    ----------
    weight
        The load of every expert, ``[layers, num_logical_experts]``.
    num_replicas
        The number of physical experts; a multiple of `num_gpus`.
    num_groups
        The number of groups of experts.
    num_nodes
        The number of nodes. If it divides `num_groups`, the experts of a group are on one node.
    num_gpus
        The number of GPUs; a multiple of `num_nodes`.

    Returns
    -------
    physical_to_logical_map : numpy.ndarray
        ``[layers, num_replicas]``: the expert of every physical expert.
    logical_to_physical_map : numpy.ndarray
        ``[layers, num_logical_experts, X]``: the physical experts of every expert; -1 fills rows up.
    expert_count : numpy.ndarray
        ``[layers, num_logical_experts]``: the number of physical experts of every expert.

    Raises
    ------
    ValueError
        If the numbers do not fit.
    """
    table = loads(weight)
    given = {"num_replicas": num_replicas, "num_groups": num_groups, "num_nodes": num_nodes, "num_gpus": num_gpus}
    sizes = [number(name, size, 1) for name, size in given.items()]
    replicas, _, nodes, gpus = sizes
    # The plan does not depend on nodes that do not divide the groups, but a number of them that cannot be is a mistake.
    if gpus % nodes:
        raise ValueError(f"{gpus} GPUs on {nodes} nodes are not the same number on each; give a multiple of num_nodes as num_gpus")
    if replicas % gpus:
        raise ValueError(f"{replicas} slots on {gpus} GPUs are not the same number on each; give a multiple of num_gpus as num_replicas")
    found = _core.rebalance_experts(table, *sizes)
    physical_to_logical, slots, counts = found
    return physical_to_logical, slots.reshape(*counts.shape, -1), counts
