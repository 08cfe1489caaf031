"""Strategies that are written in Python."""

import equipoise as eq
import numpy as np
import pytest


def greedy(database, machine, seed):
    """The heaviest object first, each to the lightest PE."""
    loads = database.pes["background_seconds"].copy()
    pe = database.objects["pe"].copy()
    movable = np.flatnonzero(database.objects["migratable"])
    fixed = np.setdiff1d(np.arange(len(pe)), movable)
    np.add.at(loads, pe[fixed], database.objects["load_seconds"][fixed])
    for at in movable[np.argsort(-database.objects["load_seconds"][movable], kind="stable")]:
        pe[at] = np.argmin(loads)
        loads[pe[at]] += database.objects["load_seconds"][at]
    return pe


class Rotate:
    """Every object to a PE that depends on the seed."""

    name = "rotate"

    def assign(self, database, machine, seed):
        assert isinstance(machine, eq.Machine) and machine.pes == len(database.pes)
        return [(at + seed) % machine.pes for at in range(len(database.objects))]


def test_functions_and_classes_work_in_map():
    for strategy in (Rotate, Rotate(), Rotate().assign):
        assert np.array_equal(eq.map("mesh:2x4", "torus:4", balancer=strategy, seed=1).pe, (np.arange(8) + 1) % 4)
    loads = [5.0, 4, 3, 3, 3]
    mapping = eq.map([(0, 1), (1, 2), (2, 3), (3, 4)], "flat:2", balancer=greedy, loads=loads)
    assert mapping.costs["max_load_seconds"] == 10 and mapping.start_costs["migrations"] == 0


def test_functions_are_rows_of_a_replay(charm_dump):
    replay = eq.replay(charm_dump, balancers=[greedy, "GreedyLB"])
    table = replay.to_pandas().set_index("name")
    assert table.loc["greedy", "max_load_seconds"] == pytest.approx(table.loc["GreedyLB", "max_load_seconds"], rel=0.01)


def test_constraints_hold_for_functions():
    def first(database, machine, seed):
        return np.where(database.objects["migratable"], 0, database.objects["pe"])

    mapping = eq.map("mesh:2x4", "flat:4", balancer=first, max_objects=2, fixed={7: 3})
    assert np.array_equal(np.bincount(mapping.pe), [2] * 4) and mapping.pe[7] == 3


def test_exceptions_come_through():
    def fails(database, machine, seed):
        raise KeyError("my own")

    for call in (
        lambda: eq.map("mesh:2x4", "flat:4", balancer=fails),
        lambda: eq.map("mesh:2x4", "flat:4", balancer=fails, max_objects=2),
    ):
        with pytest.raises(KeyError, match="my own") as caught:
            call()
        assert any("fails" in str(entry) for entry in caught.traceback)


def test_exceptions_end_a_replay(charm_dump):
    def fails(database, machine, seed):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        eq.replay(charm_dump, balancers=["GreedyLB", fails, "RefineLB"])


def test_wrong_answers_are_errors(charm_dump):
    def answer(pe):
        return lambda database, machine, seed: pe

    for wrong, sentence in [
        ([0, 4, 0, 0], "object 1 is on PE 4, but PEs are 0 to 3"),
        ([0, -1, 0, 0], "object 1 is on PE -1"),
        ([0, 1, 2], "it has 3 entries for 4 objects"),
        ([0.0] * 4, "it has values of type float64"),
        ([True] * 4, "it has values of type bool"),
        ([[0, 1], [2, 3]], "it is an array with 2 dimensions"),
        ([[0, 1], [2]], "it has rows of different lengths"),
        (None, "it is None"),
    ]:
        with pytest.raises(eq.EquipoiseError, match=f"the assignment of <lambda> was rejected: {sentence}"):
            eq.map("mesh:2x2", "flat:4", balancer=answer(wrong))
    objects = len(eq.read(charm_dump).objects)
    with pytest.raises(eq.EquipoiseError, match="is not migratable"):
        eq.replay(charm_dump, answer(np.ones(objects, int)))


def test_names_are_unique(charm_dump):
    with pytest.raises(ValueError, match="two strategies have the name rotate"):
        eq.replay(charm_dump, [Rotate(), Rotate()])
    with pytest.raises(ValueError, match="there are no balancers"):
        eq.replay(charm_dump, [])
