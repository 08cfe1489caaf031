"""The compiled module. Use the functions and classes of `equipoise`, which convert their arguments."""

import os
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray


__all__ = [
    "Database",
    "EquipoiseError",
    "Machine",
    "Mapping",
    "Plan",
    "Replay",
    "experts",
    "map",
    "predict",
    "read",
    "read_plan",
    "rebalance_experts",
    "replay",
    "strategies",
    "tasks",
]

class EquipoiseError(Exception): ...

@final
class Machine:
    def __new__(cls, spec: str) -> Machine: ...
    @property
    def spec(self) -> str: ...
    @property
    def pes(self) -> int: ...
    def distance(self, a: int, b: int) -> int: ...
    def distances_from(self, a: int) -> NDArray[np.uint32]: ...
    def all_distances(self) -> NDArray[np.uint32]: ...
    @property
    def node_of(self) -> NDArray[np.int64]: ...

@final
class Database:
    @property
    def step(self) -> int: ...
    @property
    def arrays(self) -> list[str]: ...
    @property
    def communication_recorded(self) -> bool: ...
    @property
    def sizes(self) -> tuple[int, int, int]: ...
    def pes(self) -> dict[str, NDArray[Any]]: ...
    def objects(self) -> dict[str, NDArray[Any]]: ...
    def edges(self) -> dict[str, NDArray[Any]]: ...
    def pe_loads(self, pe_of: NDArray[np.int64]) -> NDArray[np.float64]: ...
    def with_objects(self, loads: NDArray[np.float64] | None, sizes: NDArray[np.int64] | None) -> Database: ...
    def remap(self, pes: int) -> Database: ...

@final
class Mapping:
    @property
    def pe(self) -> NDArray[np.int64]: ...
    @property
    def start(self) -> NDArray[np.int64]: ...
    @property
    def summary(self) -> str: ...
    def document(self) -> str: ...
    def report(self, path: str, title: str) -> None: ...

@final
class Replay:
    @property
    def topology(self) -> str: ...
    @property
    def recommendation(self) -> tuple[str, str] | None: ...
    def documents(self) -> list[str]: ...
    def placements(self, step: int) -> dict[str, NDArray[np.int64]]: ...
    def report(self, path: str, name: str) -> None: ...

@final
class Plan:
    @property
    def physical_to_logical(self) -> NDArray[np.int64]: ...
    @property
    def counts(self) -> NDArray[np.int64]: ...
    @property
    def topology(self) -> str: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def transfers(self) -> NDArray[np.int64] | None: ...
    def documents(self) -> tuple[str, str]: ...
    def write(self, path: str | os.PathLike[str], sglang: bool) -> None: ...

def read(
    path: str | os.PathLike[str], step: int | None = None, steps: int | None = None, graph: bool = False
) -> tuple[list[Database], str, str, list[str]]: ...
def tasks(
    number: int,
    sender: NDArray[np.int64],
    receiver: NDArray[np.int64],
    bytes: NDArray[np.int64],
    messages: NDArray[np.int64],
) -> Database: ...
def strategies() -> list[str]: ...
def map(
    database: Database,
    machine: Machine,
    balancer: tuple[str, Any | None],
    limits: dict[str, Any],
    seed: int,
    start: NDArray[np.int64] | None = None,
) -> Mapping: ...
def replay(
    steps: Sequence[Database],
    program: str,
    topology: str,
    machine: Machine | None,
    balancers: Sequence[tuple[str, Any | None]],
    limits: dict[str, Any],
    seed: int,
) -> Replay: ...
def predict(
    steps: Sequence[Database],
    program: str,
    topology: str,
    machine: Machine | None,
    balancer: tuple[str, Any | None],
    seed: int,
) -> tuple[str, str]: ...
def experts(
    weight: NDArray[np.float64],
    replicas: int,
    machine: Machine,
    previous: tuple[NDArray[np.int64], str] | None,
    groups: int,
    sources: NDArray[np.float64] | None,
    gamma: float,
    tolerance: float,
    expert_bytes: int,
) -> Plan: ...
def read_plan(path: str | os.PathLike[str]) -> tuple[NDArray[np.int64], str]: ...
def rebalance_experts(
    weight: NDArray[np.float64], num_replicas: int, num_groups: int, num_nodes: int, num_gpus: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
