"""Copies and pickles, equality of machines, and the version."""

import copy
import pickle
from importlib.metadata import version

import equipoise as eq
import numpy as np
import pytest


def copies(it):
    """The copies that Python makes of an object."""
    return copy.copy(it), copy.deepcopy(it), pickle.loads(pickle.dumps(it))


def test_machines_are_equal_by_their_spec():
    machine = eq.Machine("torus:4*flat:2")
    for other in copies(machine):
        assert other == machine and hash(other) == hash(machine) and np.array_equal(other.distances(), machine.distances())
    assert machine != eq.Machine("flat:8") and machine != "torus:4*flat:2"
    assert len({machine, eq.Machine("torus:4*flat:2"), eq.Machine("flat:8")}) == 2


def test_databases_are_kept(steps):
    database = eq.read(steps)
    for other in copies(database):
        assert repr(other) == repr(database) and len(other.steps) == len(database.steps)
        for mine, its in zip(database.steps, other.steps, strict=True):
            for name in ("objects", "edges", "pes"):
                assert np.array_equal(getattr(mine, name), getattr(its, name))


def test_mappings_are_kept(matrix, tmp_path):
    mapping = eq.map(matrix, "torus:4x4x4", fixed={0: 5, 1: eq.Wish("node:2", 0.5)}, max_objects=2, phases=np.ones((64, 2)))
    for other in copies(mapping):
        for name in ("costs", "start_costs", "seconds", "notes", "summary"):
            assert getattr(other, name) == getattr(mapping, name)
        assert np.array_equal(other.pe, mapping.pe) and np.array_equal(other.start, mapping.start)
        other.report(tmp_path / "other.json")
        mapping.report(tmp_path / "mapping.json")
        assert (tmp_path / "other.json").read_text() == (tmp_path / "mapping.json").read_text()


def test_a_mapping_to_another_machine_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "machine.csv").write_text("0,1,1\n1,2,1\n")
    kept = pickle.dumps(eq.map("mesh:3", "graph:machine.csv"))
    (tmp_path / "machine.csv").write_text("0,1,1\n")
    with pytest.raises(eq.EquipoiseError, match="graph:machine.csv had 3 PEs when the mapping was pickled"):
        pickle.loads(kept)


def test_plans_are_kept(tmp_path):
    weight = np.random.default_rng(0).lognormal(0, 0.8, (2, 32))
    plan = eq.experts(weight, 40, "flat:2*flat:4")
    for plan in (plan, eq.experts(weight[:, ::-1], 40, "flat:2*flat:4", previous=plan)):
        for other in copies(plan):
            assert np.array_equal(other.logical_to_physical, plan.logical_to_physical) and repr(other) == repr(plan)
            assert other.costs == plan.costs and other.eplb_costs == plan.eplb_costs
            assert np.array_equal(other.transfers, plan.transfers)
            other.write(tmp_path / "other.json")
            plan.write(tmp_path / "plan.json")
            assert (tmp_path / "other.json").read_text() == (tmp_path / "plan.json").read_text()


def test_replays_are_copied_and_say_what_to_keep(charm_dump):
    replay = eq.replay(charm_dump, "GreedyLB")
    for other in (copy.copy(replay), copy.deepcopy(replay)):
        assert str(other) == str(replay)
    with pytest.raises(TypeError, match=r"a Replay cannot be pickled; keep what to_pandas\(\), rows\(\) and placements\(\) return"):
        pickle.dumps(replay)


def test_the_version_is_that_of_the_package():
    assert eq.__version__ == version("equipoise")
