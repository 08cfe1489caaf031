"""Predictions: which loads of recorded steps could have been predicted."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _core
from ._arrays import seed as seed_of
from ._database import Database, read
from ._machine import Machine, core
from ._strategies import Balancer
from ._strategies import balancer as balancer_of


class Predictions:
    """How well each predictor of loads would have done. As text it is the table of `equipoise replay --predict`."""

    def __init__(self, document: str, text: str) -> None:
        self._document: dict[str, Any] = json.loads(document)
        self._text = text

    @property
    def best(self) -> str | None:
        """The best predictor, as `--lb-predict` takes it."""
        best: str | None = self._document["best"]
        return best

    def rows(self) -> list[dict[str, Any]]:
        """A row for each predictor, with `predictor`, `load_error` and `max_over_avg`; that of known loads has no predictor."""
        rows: list[dict[str, Any]] = self._document["predictors"]
        return rows

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __str__(self) -> str:
        return self._text


def predict(
    database: Database | str | os.PathLike[str],
    balancer: Balancer = "GreedyRefineLB",
    topology: Machine | str | None = None,
    seed: int = 0,
) -> Predictions:
    """Judges predictors of loads by recorded steps.

    The strategy places the objects of each step by predicted loads; the loads of the next step show what that was worth.

    Parameters
    ----------
    database
        A database of several steps, or its file.
    balancer
        The spec of a strategy, or a strategy that is written in Python as for `map`.
    topology
        The machine; by default the recorded one if it has as many PEs, else a flat machine.
    seed
        The seed of the random number generator.

    Returns
    -------
    Predictions
        With `best`, `rows` and `to_pandas`.

    Raises
    ------
    ValueError
        If an argument is wrong.
    EquipoiseError
        If the database has only one step or cannot be used, or the strategy gave no answer. Exceptions of a Python strategy
        are raised unchanged.
    """
    if not isinstance(database, Database):
        database = read(database)
    machine = None if topology is None else core(topology)
    found = _core.predict(
        database._cores, database.program, database.topology, machine, balancer_of(balancer), seed_of(seed)
    )
    return Predictions(*found)
