"""`equipoise.map` against costs that NumPy computes, for every kind of graph."""

import json
import warnings
from collections import Counter

import equipoise as eq
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

TORUS = "torus:4x4x4"


def hop_bytes(matrix, pe) -> int:
    """Bytes times distances on the torus of 4 x 4 x 4 PEs, the first dimension fastest."""
    coo = matrix.tocoo()
    place = np.stack([pe % 4, pe // 4 % 4, pe // 16])
    apart = np.abs(place[:, coo.row] - place[:, coo.col])
    return int((coo.data * np.minimum(apart, 4 - apart).sum(axis=0)).sum())


def test_costs_are_those_of_an_independent_computation(matrix):
    loads = np.linspace(1, 2, 64)
    mapping = eq.map(matrix, TORUS, balancer="PoiseLB", loads=loads, fixed=None, seed=0)
    assert mapping.pe.shape == (64,) and mapping.pe.dtype == np.int64
    assert mapping.costs["hop_bytes"] == hop_bytes(matrix, mapping.pe)
    assert mapping.start_costs["hop_bytes"] == hop_bytes(matrix, np.arange(64))
    assert mapping.costs["hop_bytes"] < mapping.start_costs["hop_bytes"]
    by_pe = np.bincount(mapping.pe, weights=loads, minlength=64)
    assert mapping.costs["max_load_seconds"] == pytest.approx(by_pe.max())
    assert mapping.costs["migrations"] == np.sum(mapping.pe != np.arange(64))
    again = eq.map(matrix, TORUS, loads=loads)
    assert np.array_equal(again.pe, mapping.pe)


def test_all_kinds_of_graphs_give_the_same_mapping(matrix, tmp_path):
    coo = matrix.tocoo()
    edges = [(int(a), int(b), int(volume)) for a, b, volume in zip(coo.row, coo.col, coo.data)]
    directed = nx.DiGraph()
    directed.add_nodes_from(range(64))
    directed.add_weighted_edges_from(edges)
    file = tmp_path / "tasks.csv"
    file.write_text("".join(f"{a},{b},{volume}\n" for a, b, volume in [*edges, (63, 63, 0)]))
    expected = eq.map(matrix, TORUS).pe
    # A loop of no bytes says that there is a last task.
    listed = [*edges, (63, 63, 0)]
    dictionary = {(a, b): volume for a, b, volume in listed}
    table = np.array(listed, [("from", int), ("to", int), ("bytes", float)])
    frame = pd.DataFrame(listed, columns=["sender", "receiver", "bytes"])
    for graph in [
        matrix.tolil(), matrix.toarray(), directed, listed, np.array(listed), file, str(file), dictionary, Counter(dictionary), table, frame,
    ]:  # fmt: skip
        assert np.array_equal(eq.map(graph, TORUS).pe, expected), type(graph)


def test_tables_have_bytes_and_messages_if_they_need_them(charm_dump):
    costs = eq.map(pd.DataFrame({"from": [0, 1], "to": [1, 2], "messages": [3, 4]}), "torus:4").costs
    assert costs["total_bytes"] == 2 and costs["total_messages"] == 7
    database = eq.read(charm_dump)
    matrix = database.to_scipy()
    # Edges of a database that begin or end at a PE are none between tasks.
    of_pe = np.array([(0, 3, True, 9)], [("from", int), ("to", int), ("to_pe", bool), ("bytes", int)])
    for edges in (database.edges, database.to_pandas().edges):
        costs = eq.map(edges, "flat:2", balancer="DummyLB").costs
        assert costs["total_bytes"] == matrix.sum() - matrix.diagonal().sum()
    with pytest.raises(ValueError, match="there are no edges"):
        eq.map(of_pe, "flat:4")


def test_a_square_list_has_edges_and_a_square_array_is_a_matrix():
    square = [[0, 1, 5], [1, 2, 6], [2, 0, 7]]
    for graph, volume in [(square, 18), (np.array(square), 1 + 5 + 1 + 6 + 2)]:
        assert eq.map(graph, "torus:3", balancer="DummyLB").costs["total_bytes"] == volume


def test_narrow_and_wide_floats_raise_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        narrow = eq.map(np.ones((4, 4), np.float16), "flat:4", loads=np.ones(4, np.float16))
        assert narrow.costs["total_bytes"] == 12
        with pytest.raises(ValueError, match=r"loads\[0\] is inf"):
            eq.map("mesh:2x2", "flat:4", loads=np.full(4, np.longdouble("1e4000")))


def test_the_strategy_that_moves_nothing_judges_a_mapping(matrix):
    pe = np.random.default_rng(0).permutation(64)
    own = eq.map(matrix, TORUS, balancer="DummyLB", start=pe)
    assert np.array_equal(own.pe, pe) and own.costs["hop_bytes"] == own.start_costs["hop_bytes"] == hop_bytes(matrix, pe)
    assert own.costs["migrations"] == 0


def test_edges_without_direction_count_both_ways():
    graph = nx.Graph()
    graph.add_edge("a", "b", bytes=10)
    mapping = eq.map(graph, "torus:2", balancer="DummyLB")
    assert mapping.costs["total_bytes"] == 20 and mapping.costs["total_messages"] == 2


def test_more_tasks_than_pes_start_in_blocks():
    mapping = eq.map("mesh:8x8", "flat:4", balancer="DummyLB")
    assert np.array_equal(mapping.pe, np.arange(64) // 16)
    start = np.arange(64) % 4
    kept = eq.map("mesh:8x8", "flat:4", balancer="DummyLB", start=start)
    assert np.array_equal(kept.pe, start) and np.array_equal(kept.start, start)


def test_loads_and_sizes_of_files_can_be_replaced(charm_dump):
    database = eq.read(charm_dump)
    loads = np.arange(1053.0)
    mapping = eq.map(database, "flat:2", balancer="DummyLB", loads=loads, object_bytes=np.ones(1053))
    by_pe = np.bincount(mapping.pe, weights=loads)
    assert mapping.costs["max_load_seconds"] == pytest.approx((by_pe + database.pes["background_seconds"]).max())
    assert eq.map("mesh:2x2", "flat:2", balancer="DummyLB", loads=[1, 2, 3, 4]).costs["max_load_seconds"] == 7


def test_the_first_step_is_mapped(steps):
    with pytest.warns(UserWarning, match="mapping the first, step"):
        eq.map(eq.read(steps), "flat:4", balancer="DummyLB")


def test_reports_are_pages_and_documents(matrix, tmp_path):
    mapping = eq.map(matrix, eq.Machine(TORUS))
    mapping.report(tmp_path / "map.html")
    mapping.report(str(tmp_path / "map.json"))
    assert "<html" in (tmp_path / "map.html").read_text()
    document = json.loads((tmp_path / "map.json").read_text())
    assert document["placements"][1]["pe_of"] == mapping.pe.tolist()
    assert TORUS in repr(mapping)


def test_tables_may_have_weights_and_name_their_rows():
    columns = [("from", "i8"), ("to", "i8"), ("weight", "i8"), ("from_pe", "?")]
    table = np.array([(0, 1, 3, False), (9, 1, 5, True), (1, 2, 4, False)], columns)
    assert eq.map(table, "torus:4").costs["total_bytes"] == 7
    table["weight"][2] = -4
    with pytest.raises(ValueError, match="weight in row 2 is -4"):
        eq.map(table, "torus:4")


def test_constraints_are_kept(matrix):
    fixed = {0: 5, 1: [1, 2], 2: "node:3", 3: "!0-62", 4: "8,9"}
    mapping = eq.map(matrix, TORUS, fixed=fixed, max_objects=1)
    assert mapping.pe[0] == 5 and mapping.pe[1] in (1, 2) and mapping.pe[2] == 3 and mapping.pe[3] == 63 and mapping.pe[4] in (8, 9)
    assert len(set(mapping.pe)) == 64
    # Two numbers in a tuple are two PEs; a wish has its name, or a place that is no number.
    for pair in [(3, 2), [3, 2], np.array([3, 2]), range(2, 4)]:
        assert eq.map(matrix, TORUS, fixed={0: pair}).pe[0] in (2, 3)
    for wish in [eq.Wish(7, 1e6), eq.Wish("7", 1_000_000), ("7", 1e6), ([7], 1_000_000)]:
        wished = eq.map(matrix, TORUS, fixed={0: wish})
        assert wished.pe[0] == 7 and wished.notes["wishes granted"] == 1
    listed = eq.map(matrix, TORUS, fixed=[7, None, 9] + [None] * 61)
    assert listed.pe[0] == 7 and listed.pe[2] == 9
    sizes = np.arange(64) + 1
    small = eq.map(matrix, "flat:8", memory=300, object_bytes=sizes, max_objects=[9] * 8, groups=["apart pe 0 1 2"])
    assert np.bincount(small.pe, weights=sizes).max() <= 300 and np.bincount(small.pe).max() <= 9
    assert len(set(small.pe[:3])) == 3
    line = eq.map(matrix, "flat:8", groups="apart pe 0 1 2")
    assert len(set(line.pe[:3])) == 3
    exact = eq.map(matrix, "flat:8", max_objects="8,exact")
    assert np.array_equal(np.bincount(exact.pe), [8] * 8)


def test_loads_by_phase_are_balanced_in_each_phase(matrix, tmp_path):
    # Half of the tasks work in the first phase, the others in the second one.
    phases = np.zeros((64, 2))
    phases[:32, 0] = phases[32:, 1] = 1
    mapping = eq.map(matrix, "flat:8", phases=phases)
    for phase in range(2):
        assert np.bincount(mapping.pe, weights=phases[:, phase], minlength=8).max() == 4
    assert mapping.costs["phases_seconds"] == 8
    file = tmp_path / "phases"
    file.write_text("".join(f"{task} {first} {second}\n" for task, (first, second) in enumerate(phases)))
    assert np.array_equal(eq.map(matrix, "flat:8", phases=file).pe, mapping.pe)


def test_few_tasks_move(matrix):
    start = np.arange(64) % 8
    free = eq.map(matrix, "flat:8", start=start)
    assert (free.pe != start).sum() > 6
    for most in (6, "10%"):
        assert 0 < (eq.map(matrix, "flat:8", start=start, max_moves=most).pe != start).sum() <= 6
    assert np.array_equal(eq.map(matrix, "flat:8", start=start, max_moves=0).pe, start)


def test_recorded_constraints_are_kept(tmp_path):
    objects = [{"id": i, "load_seconds": 1, "pe": 0, "bytes": 10, "migratable": True} for i in range(4)]
    step = {"pes": [{}, {}, {}, {}], "objects": objects, "edges": [], "constraints": {"max_objects": {"most": 1}}}
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"type": "equipoise-lb-database", "version": 2, "steps": [step]}))
    assert sorted(eq.map(eq.read(file), "flat:4", balancer="DummyLB").pe) == [0, 1, 2, 3]
    assert list(eq.map(eq.read(file), "flat:4", balancer="DummyLB", max_objects=4).pe) == [0, 0, 0, 0]


def test_files_of_constraints(matrix, tmp_path):
    file = tmp_path / "fixed"
    file.write_text("3 17\n")
    assert eq.map(matrix, TORUS, fixed=file).pe[3] == 17
    for name in ("fixed", "groups", "memory", "max_objects", "phases", "graph"):
        with pytest.raises(eq.EquipoiseError, match="none"):
            eq.map(**{"graph": matrix, "topology": TORUS, name: tmp_path / "none"})
    # A text that may be something else than a name of a file is a wrong argument.
    for name in ("groups", "memory", "max_objects", "graph", "topology"):
        with pytest.raises(ValueError, match="none"):
            eq.map(**{"graph": matrix, "topology": TORUS, name: "graph:none.csv" if name == "topology" else "none"})
    for name in ("fixed", "phases"):
        with pytest.raises(eq.EquipoiseError, match="none"):
            eq.map(**{"graph": matrix, "topology": TORUS, name: "none"})


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"balancer": "PoiseLP"}, "PoiseLB"),
        ({"topology": "moebius:7"}, "moebius"),
        ({"loads": [1.0]}, "loads has 1 entries and 64 are needed"),
        ({"loads": [-1.0] * 64}, r"loads\[0\] is -1.0"),
        ({"graph": np.ones((2, 9))}, "the matrix has the size 2 x 9"),
        ({"graph": [(0, 1, 0.5)]}, r"bytes\[0\] is 0.5"),
        ({"graph": [(0, 1), (0, 1, 2)]}, "the edges have different lengths"),
        ({"graph": csr_array(np.full((2, 2), np.nan))}, r"the entry \[0, 0\] of the matrix is nan"),
        ({"graph": np.array([[0, 2.0**53 + 2], [0, 0]])}, r"the entry \[0, 1\] of the matrix is 9007199254740994.0; give whole numbers from 0 to 9007199254740992, or"),
        ({"graph": np.full((2, 2), 2**64 - 1, np.uint64)}, "is 18446744073709551615; give whole numbers from 0 to 9223372036854775807"),
        ({"graph": {(0, 1): -5}}, r"the value of \(0, 1\) is -5"),
        ({"graph": {}}, "there are no edges"),
        ({"graph": nx.DiGraph([("a", "b", {"bytes": -1})])}, r"the bytes of the edge \('a', 'b'\) is -1"),
        ({"loads": [9e301] * 64}, r"loads\[0\] is 9e\+301; give numbers from 0 to 1e\+100"),
        ({"memory": 1, "object_bytes": [5] * 64}, "room for 64; give --memory"),
        ({"memory": "80Q", "object_bytes": [5] * 64}, "80Q"),
        ({"graph": "no/such/file.csv"}, "no/such/file.csv"),
        ({"fixed": {0: 99}}, "have no PE 99"),
        ({"fixed": {0: "x"}}, "entry 1 of fixed: expected places"),
        ({"fixed": {0: 1, 1: 1}, "max_objects": 1}, "1"),
        ({"memory": 10}, "is not recorded"),
        ({"start": [0] * 63}, "63"),
        ({"fixed": {99: 0}}, "^there is no object 99 among 64 objects"),
        ({"fixed": [-3] + [None] * 63}, "a PE of fixed is -3; give a number of at least 0"),
        ({"fixed": {0: []}}, "a place of fixed has no PE"),
        ({"fixed": {0: eq.Wish(3, -1.0)}}, "the seconds of a wish is -1.0"),
        ({"groups": "next to 3"}, "groups is 'next to 3', which is no line and no file; give lines such as 'together"),
        ({"max_objects": "x"}, "max_objects is 'x', which is no number and no file; give a number such as '4'"),
        ({"seed": 2**64}, "seed is 18446744073709551616; give a number of at most 18446744073709551615"),
        ({"seed": -1}, "seed is -1; give a number of at least 0"),
        ({"phases": np.zeros((63, 2))}, "phases has 63 entries and 64 are needed; give one for each"),
        ({"phases": np.zeros((64, 0))}, "phases has no columns; give a column for each phase"),
        ({"phases": np.zeros(64)}, "phases has 1 dimensions; give an array with 2"),
        ({"max_moves": "few"}, "max_moves is `few`: expected a number of objects such as 100"),
        ({"max_moves": -1}, "max_moves is -1; give a number of at least 0"),
        ({"max_moves": 3, "max_objects": 8}, "may move more objects than max_moves allows; leave one out"),
    ],
)
def test_wrong_arguments_are_value_errors(matrix, arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        eq.map(**{"graph": matrix, "topology": TORUS, **arguments})


def test_wrong_types_are_type_errors(matrix):
    with pytest.raises(TypeError, match="topology is a int"):
        eq.map(matrix, 64)
    with pytest.raises(TypeError, match="a balancer cannot be a int"):
        eq.map(matrix, TORUS, balancer=3)
    with pytest.raises(TypeError, match="loads has values of type"):
        eq.map(matrix, TORUS, loads=["x"] * 64)
    for wrong in (0.9, True, np.True_, "3", float("inf")):
        with pytest.raises(TypeError, match="a PE of fixed is .*; give a whole number"):
            eq.map(matrix, TORUS, fixed=[wrong] + [None] * 63)
    with pytest.raises(TypeError, match=r"give whole numbers for several PEs, or Wish\(place, seconds\)"):
        eq.map(matrix, TORUS, fixed={0: (3, 2.0)})
    for graph, wrong in [
        ({0: {1: 5}}, "the graph has the key 0, which is no pair of tasks"),
        (pd.DataFrame({"source": [0], "target": [1]}), "the table of edges has the columns source, target"),
        (np.zeros(2, [("a", int)]), "the table of edges has the columns a"),
        (5, "a graph cannot be a int"),
    ]:
        with pytest.raises(TypeError, match=f"^{wrong}; give a square matrix, .* a table with the columns from and to"):
            eq.map(graph, TORUS)
    with pytest.raises(TypeError, match="bytes has values of type object; give numbers of at most 64 bits"):
        eq.map({(0, 1): 2**70}, TORUS)
    with pytest.raises(TypeError, match="groups has the entry 3"):
        eq.map(matrix, TORUS, groups=[3])


def test_the_summary_is_that_of_the_command(matrix):
    assert "Hop-bytes fell to" in eq.map(matrix, TORUS).summary
    swapped = eq.map(matrix, TORUS, balancer="SwapLB")
    part = swapped.costs["hop_bytes"] / swapped.start_costs["hop_bytes"]
    assert swapped.summary == f"Hop-bytes fell to {100 * part:.1f} % of the previous value."


def test_seeds_have_64_bits():
    assert eq.map("mesh:8x8", "torus:8x8", balancer="RandomLB", seed=2**64 - 1).pe.max() < 64


def test_machines_have_distances():
    machine = eq.Machine("torus:4*flat:2")
    table = machine.distances()
    assert table.shape == (8, 8) and np.array_equal(table, table.T) and np.array_equal(table[3], machine.distances_from(3))
    assert machine.distance(0, 7) == table[0, 7] and machine.node_of.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    for wrong in (8, 99, -1, 2**70):
        with pytest.raises(IndexError, match=f"there is no PE {wrong}"):
            machine.distance(0, wrong)
    with pytest.raises(IndexError, match="there is no PE -1"):
        machine.distances_from(-1)


def test_files_of_mappings_and_launchers_are_read_back(matrix, tmp_path):
    machine = "torus:4x4*flat:4"
    mapping = eq.map(matrix, machine)
    mapping.write(tmp_path / "tasks.map")
    assert [int(line) for line in (tmp_path / "tasks.map").read_text().split()] == mapping.pe.tolist()
    for launcher in ("openmpi", "pods", "torchrun", "json"):
        mapping.write(tmp_path / "ranks", launcher)
        start = f"{launcher}={tmp_path / 'ranks'}"
        judged = eq.map(matrix, machine, balancer="DummyLB", start=start)
        if launcher in ("openmpi", "json"):
            assert np.array_equal(judged.pe, mapping.pe) and judged.costs["hop_bytes"] == mapping.costs["hop_bytes"]
        # Some formats name nodes only.
        assert np.array_equal(judged.pe // 4, mapping.pe // 4), launcher
    judged = eq.map(matrix, machine, balancer="DummyLB", start=tmp_path / "tasks.map")
    assert np.array_equal(judged.pe, mapping.pe)
    for start, error in [("tasks.map", eq.EquipoiseError), ("torchrun=missing", eq.EquipoiseError)]:
        with pytest.raises(error, match="cannot read"):
            eq.map(matrix, machine, start=start)
    (tmp_path / "short").write_text("0\n1\n")
    with pytest.raises(eq.EquipoiseError, match="places 2 objects, not 64"):
        eq.map(matrix, machine, start=tmp_path / "short")
    with pytest.raises(ValueError, match="did you mean `torchrun`"):
        mapping.write(tmp_path / "ranks", "torchrum")
    two = eq.map(matrix, "flat:32")
    with pytest.raises(ValueError, match="use --slots 2"):
        two.write(tmp_path / "ranks", "openmpi")
    two.write(tmp_path / "ranks", "openmpi", slots=2)
    assert np.array_equal(eq.map(matrix, "flat:32", "DummyLB", start=f"openmpi={tmp_path / 'ranks'}").pe, two.pe)
    # Slots of nodes are numbered by the slots of PEs, of which some are free here.
    half = eq.map(matrix, machine, "DummyLB", start=np.arange(64) // 2 * 2)
    half.write(tmp_path / "ranks", "openmpi", slots=2)
    again = eq.map(matrix, machine, "DummyLB", start=f"openmpi={tmp_path / 'ranks'}", slots=2)
    assert np.array_equal(again.pe, half.pe)
    with pytest.raises(ValueError, match="slots has no effect without launcher"):
        two.write(tmp_path / "ranks", slots=2)
    with pytest.raises(ValueError, match="slots has no effect without the file of a launcher as start"):
        eq.map(matrix, machine, slots=2)
    with pytest.raises(ValueError, match="did you mean `torchrun`"):
        eq.map(matrix, machine, start="torchrum=ranks")
    with pytest.raises(ValueError, match="slots is 0; give a number of at least 1"):
        two.write(tmp_path / "ranks", "openmpi", slots=0)
    with pytest.raises(eq.EquipoiseError, match="cannot write the mapping"):
        two.write(tmp_path / "missing" / "ranks")


def test_explanations_agree_with_costs(matrix):
    mapping = eq.map(matrix, TORUS)
    explanation = mapping.explain()
    for when, costs in [("before", mapping.start_costs), ("after", mapping.costs)]:
        by_distance = sum(at["distance"] * at[f"bytes_{when}"] for at in explanation["distances"])
        assert by_distance == costs["hop_bytes"]
        links = explanation[f"hot_{when}"]
        assert len(links) == 8 and links[0]["bytes"] == costs["max_link_bytes"] and links[0]["seconds"] > 0
    assert explanation["levels"] == []
    all_of_it = mapping.explain(most=10**6)
    # Each of the 64 nodes has six links to others.
    assert all_of_it["hot_after"][:8] == explanation["hot_after"] and len(all_of_it["hot_after"]) <= 6 * 64
    assert mapping.explain(most=0)["hot_after"] == []
