"""`equipoise.read` and `equipoise.replay` against pandas and SciPy."""

import json

import equipoise as eq
import numpy as np
import pytest


def test_columns_of_a_charm_dump(charm_dump):
    database = eq.read(charm_dump)
    text = charm_dump.with_name(charm_dump.name + ".txt").read_text().splitlines()
    rows = [line.split() for line in text if line.startswith("O ")]
    expected = np.array([float(row[row.index("wall") + 1]) for row in rows])
    assert len(database.objects) == len(rows) == 1053
    assert np.allclose(database.objects["load_seconds"], expected, atol=1e-9)
    assert np.array_equal(database.objects["pe"], [int(row[row.index("pe") + 1]) for row in rows])
    assert np.array_equal(database.objects["migratable"], [row[row.index("mig") + 1] == "1" for row in rows])
    assert len(database.pes) == 2 and "1053 objects" in repr(database)


def test_tables_and_matrices_have_the_same_totals(steps):
    database = eq.read(steps, step=eq.read(steps).step)
    frames = database.to_pandas()
    assert len(frames.objects) == len(database.objects) and len(frames.edges) == len(database.edges)
    assert frames.objects["load_seconds"].sum() == pytest.approx(database.objects["load_seconds"].sum())
    between = frames.edges[~frames.edges["from_pe"] & ~frames.edges["to_pe"]]
    for values in ("bytes", "messages"):
        matrix = database.to_scipy(values)
        assert matrix.shape == (len(database.objects),) * 2 and matrix.sum() == between[values].sum()
    with pytest.raises(ValueError, match="no 'hops'"):
        database.to_scipy("hops")


def test_loads_of_pes(charm_dump):
    database = eq.read(charm_dump)
    objects, pes = database.objects, database.pes
    work = np.bincount(objects["pe"], weights=objects["load_seconds"], minlength=2)
    assert database.pe_loads() == pytest.approx(work / pes["speed"] + pes["background_seconds"])
    moved = database.pe_loads(np.zeros(len(objects), int))
    assert moved[0] > moved[1]
    with pytest.raises(ValueError, match="object 0 is on PE 2"):
        database.pe_loads(np.full(len(objects), 2))


def test_horizons_and_costs_of_messages_decide_what_is_recommended(steps, tmp_path):
    database = eq.read(steps, step=eq.read(steps).step)
    balancers = ["DummyLB", "PoiseLB"]
    costs = tmp_path / "costs.json"
    costs.write_text('{"migration": {"send_seconds": 1000.0}}')
    # PoiseLB makes periods shorter by milliseconds, and its moves take hours.
    assert eq.replay(database, balancers, horizon=1e9, cost_model=costs).recommendation[0] == "PoiseLB"
    assert eq.replay(database, balancers, cost_model=costs).recommendation[0] == "DummyLB"
    assert "so keep the placement before" in str(eq.replay(database, "PoiseLB", cost_model=costs))
    with pytest.raises(ValueError, match="horizon is -1; give a number of periods from 0 to 1e12"):
        eq.replay(database, balancers, horizon=-1)
    with pytest.raises(eq.EquipoiseError, match="no-such.json"):
        eq.replay(database, balancers, cost_model=tmp_path / "no-such.json")


def test_rows_of_a_replay(charm_dump):
    database = eq.read(charm_dump)
    replay = eq.replay(database, balancers=["RefineLB", "PoiseLB"])
    table = replay.to_pandas()
    assert table["name"].tolist() == ["(as recorded)", "RefineLB", "PoiseLB"]
    for name, pe in replay.placements().items():
        row = table[table["name"] == name].iloc[0]
        assert row["max_load_seconds"] == pytest.approx(database.pe_loads(pe).max())
        assert row["migrations"] == np.sum(pe != database.objects["pe"])
    assert replay.recommendation[0] in str(replay)
    assert repr(replay) == f"<Replay of {database.program}, 1 step on flat:2, recommended: {replay.recommendation[0]}>"
    assert replay.placements(-1).keys() == replay.placements().keys()
    with pytest.raises(IndexError, match="there is no step 99; the replay has 1 step: 0"):
        replay.placements(99)


def test_all_steps_are_replayed(steps):
    database = eq.read(steps)
    assert len(database.steps) > 1
    table = eq.replay(steps, "GreedyRefineLB").to_pandas()
    assert table["step"].unique().tolist() == [step.step for step in database.steps]
    one = eq.replay(database.steps[1], "GreedyRefineLB")
    assert [document["database"]["step"] for document in one.steps] == [database.steps[1].step]


def test_reports_show_the_placements(charm_dump, tmp_path):
    database = eq.read(charm_dump)

    def all_on_one(database, machine, seed):
        return np.where(database.objects["migratable"], 0, database.objects["pe"])

    replay = eq.replay(charm_dump, ["RefineLB", all_on_one])
    replay.report(tmp_path / "replay.html")
    replay.report(str(tmp_path / "replay.json"))
    assert "<html" in (tmp_path / "replay.html").read_text()
    document = json.loads((tmp_path / "replay.json").read_text())
    assert document["title"] == "Replay of leanmd_333_1053.dat.0 on flat:2"
    shown = {it["name"]: it["pe_of"] for it in document["placements"]}
    assert shown.pop("as recorded") == database.objects["pe"].tolist()
    assert shown == {name: pe.tolist() for name, pe in replay.placements().items()}
    assert document["placements"][document["recommended"]]["name"] == replay.recommendation[0]
    with pytest.raises(ValueError, match="ends neither in .html nor in .json"):
        replay.report(tmp_path / "replay.pdf")
    with pytest.raises(eq.EquipoiseError, match="cannot be written"):
        replay.report(tmp_path / "missing" / "replay.html")


def test_reports_of_several_steps(steps, tmp_path):
    eq.replay(steps, ["GreedyRefineLB"]).report(tmp_path / "steps.json")
    document = json.loads((tmp_path / "steps.json").read_text())
    assert len(document["steps"]["scales"]) == len(eq.read(steps).steps)
    # Placements with fewer migrations, for which the strategy is asked again.
    between = document["placements"][document["recommended"]]["between"]
    assert len(between) > 1 and between[0]["migrations"] < between[-1]["migrations"]


def test_predictors_are_judged(steps):
    found = eq.predict(steps)
    table = found.to_pandas().set_index("predictor")
    # The error of the last loads, over the objects that the step after has, too.
    difference = total = 0.0
    databases = eq.read(steps).steps
    for now, after in zip(databases, databases[1:]):
        measured = dict(zip(after.objects["id"], after.objects["load_seconds"]))
        for identity, load in zip(now.objects["id"], now.objects["load_seconds"]):
            if identity in measured:
                difference += abs(load - measured[identity])
                total += measured[identity]
    assert table.loc["last", "load_error"] == pytest.approx(difference / total)
    known = found.rows()[0]
    assert known["predictor"] is None and known["load_error"] == 0
    predictors = [row for row in found.rows() if row["predictor"]]
    assert min(predictors, key=lambda row: row["max_over_avg"])["predictor"] == found.best
    assert f"--lb-predict {found.best}" in str(found)
    with pytest.raises(eq.EquipoiseError, match="step"):
        eq.predict(databases[0])

    def fails(database, machine, seed):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        eq.predict(steps, fails)


def test_other_numbers_of_pes_and_machines(charm_dump):
    database = eq.read(charm_dump).remap(8)
    replay = eq.replay(database, "GreedyLB", topology="torus:2x4", seed=3)
    assert replay.topology == "torus:2x4" and len(database.pes) == 8
    with pytest.raises(ValueError, match="pes is 0; give a number of at least 1"):
        database.remap(0)
    for call in (eq.replay, eq.predict):
        with pytest.raises(ValueError, match=r"has 8 PEs and the topology `flat:4` has 4 PEs; give a topology of 8 PEs, or database.remap\(4\)$"):
            call(database, "GreedyLB", topology="flat:4")


def test_constraints_of_a_replay(charm_dump):
    database = eq.read(charm_dump)
    first = database.objects["id"][database.objects["migratable"]][0]
    replay = eq.replay(database, "GreedyLB", fixed={first: 1}, max_objects=600)
    pe = replay.placements()["GreedyLB"]
    assert pe[database.objects["id"] == first] == 1 and np.bincount(pe).max() <= 600
    with pytest.raises(ValueError, match="^there is no object 99 among 1053 objects"):
        eq.replay(database, "GreedyLB", fixed={99: 1})


def test_a_step_that_is_not_in_the_file(steps):
    with pytest.raises(ValueError, match="no step 99"):
        eq.read(steps, step=99)


def test_a_file_that_is_no_database(tmp_path):
    file = tmp_path / "empty.db"
    file.write_bytes(b"not a database")
    with pytest.raises(eq.EquipoiseError, match="empty.db"):
        eq.read(file)
    with pytest.raises(eq.EquipoiseError, match="cannot read the database"):
        eq.read(tmp_path / "missing.db")
    assert not issubclass(eq.EquipoiseError, ValueError)
