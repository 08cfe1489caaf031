"""Replays: strategies compared on recorded steps."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._arrays import seed as seed_of
from ._database import Database, read
from ._limits import Amount, Fixed, Groups, Phases, limits
from ._machine import Machine, core
from ._strategies import Balancer
from ._strategies import balancer as balancer_of


class Replay:
    """What strategies answered at each recorded step. As text it is the table of `equipoise replay`."""

    def __init__(self, found: _core.Replay, name: str) -> None:
        self._core = found
        self._name = name

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """A document for each step, with `database`, `before`, `strategies` and `refusals`."""
        return [json.loads(document) for document in self._core.documents()]

    @property
    def topology(self) -> str:
        """The spec of the machine."""
        return self._core.topology

    @property
    def recommendation(self) -> tuple[str, str] | None:
        """The recommended strategy, and why."""
        return self._core.recommendation

    def placements(self, step: int = 0) -> dict[str, NDArray[np.int64]]:
        """The PE of every object by strategy, at the step with this position."""
        number = len(self.steps)
        try:
            return self._core.placements(range(number)[step])
        except IndexError:
            steps = "1 step: 0" if number == 1 else f"{number} steps: 0 to {number - 1}"
            raise IndexError(f"there is no step {step}; the replay has {steps}") from None

    def rows(self) -> list[dict[str, Any]]:
        """A row for each step and placement, as in the CSV of `equipoise replay`."""
        rows = []
        for document in self.steps:
            step = document["database"]["step"]
            rows.append({"step": step, "name": "(as recorded)", **document["before"]})
            for row in document["strategies"]:
                found = {"step": step, "name": row["name"], "seconds": row["seconds"], **row["after"]}
                rows.append({**found, "on_front": row["on_front"]})
            for refusal in document.get("refusals", []):
                rows.append({"step": step, "name": refusal["name"], "error": refusal["error"]})
        return rows

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`: a row for each step and placement, a column for each cost."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes a report for people: all strategies, with the placements of the step with the largest load.

        Parameters
        ----------
        path
            A name that ends in `.html` (a page for any browser) or `.json` (the numbers of the page).
        """
        self._core.report(os.fspath(path), self._name)

    def __str__(self) -> str:
        return str(self._core)

    def __repr__(self) -> str:
        number, best, title = len(self.steps), self.recommendation, self._core.recommendation_title
        steps = "1 step" if number == 1 else f"{number} steps"
        recommended = f", {title.lower()}: {best[0]}" if best and title else ""
        return f"<Replay of {self._name}, {steps} on {self.topology}{recommended}>"


def replay(
    database: Database | str | os.PathLike[str],
    balancers: Sequence[Balancer] | Balancer | None = None,
    topology: Machine | str | None = None,
    seed: int = 0,
    *,
    fixed: Fixed = None,
    max_objects: Amount = None,
    memory: Amount = None,
    groups: Groups = None,
    phases: Phases = None,
    max_moves: int | str | None = None,
    horizon: float = 1.0,
    cost_model: str | os.PathLike[str] | None = None,
) -> Replay:
    """Compares strategies on recorded load-balancing steps.

    Parameters
    ----------
    database
        A database or its file. All its steps are replayed; ``database.steps[i]`` is one of them.
    balancers
        Specs of strategies, and strategies that are written in Python as for `map`; by default all that need no
        parameters. Of several Python strategies with one name, give each its own attribute `name`.
    topology
        The machine; by default the recorded one if it has as many PEs, else a flat machine.
    seed
        The seed of the random number generator.
    fixed, max_objects, memory, groups, phases, max_moves
        As for `map`. Objects are named by their ids; the rows of `phases` have the order of the objects of the first step.
    horizon
        The number of periods until the next load-balancing step, for the recommendation where the costs of messages are known.
    cost_model
        A JSON file of what messages and migrations cost; by default as recorded.

    Returns
    -------
    Replay
        With `to_pandas`, `placements`, `recommendation` and `report`.

    Raises
    ------
    ValueError
        If an argument is wrong, or no placement can keep the constraints.
    EquipoiseError
        If the database cannot be used, or no strategy gave an answer. Exceptions of a Python strategy are raised
        unchanged.
    """
    name = ""
    if not isinstance(database, Database):
        name = os.path.basename(os.fspath(database))
        database = read(database)
    if balancers is None:
        balancers = _core.strategies()
    elif isinstance(balancers, str) or not isinstance(balancers, Sequence):
        balancers = [balancers]
    chosen = [balancer_of(given) for given in balancers]
    names = [name for name, _ in chosen]
    twice = {name for name, call in chosen if call is not None and names.count(name) > 1}
    if not chosen or twice:
        wrong = f"two strategies have the name {min(twice)}" if twice else "there are no balancers"
        raise ValueError(f"{wrong}; give each strategy its own name" if twice else f"{wrong}; give at least one")
    keep = limits(database._core, fixed, groups, max_objects, memory, phases, max_moves)
    machine = None if topology is None else core(topology)
    seed = seed_of(seed)
    if not 0 <= horizon <= 1e12:  # also not a number
        raise ValueError(f"horizon is {horizon}; give a number of periods from 0 to 1e12 such as 10")
    found = _core.replay(
        database._cores, database.program, database.topology, machine, chosen, keep, seed, horizon, cost_model
    )
    return Replay(found, name or database.program or "a database")
