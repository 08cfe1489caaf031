"""`equipoise.experts` and `equipoise.eplb` against NumPy and the published example."""

import json
from collections import Counter

import equipoise as eq
import numpy as np
import pytest

# The example of EPLB's README.
WEIGHT = np.array(
    [[90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86], [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27]]
)


def ratios(plan, weight, gpus):
    """The heaviest GPU over the average of each layer, and the most replicas of an expert on a GPU."""
    found, most = [], 0
    for layer, experts in enumerate(plan):
        counts = np.bincount(experts, minlength=weight.shape[1])
        by_gpu = experts.reshape(gpus, -1)
        loads = (weight[layer] / counts)[by_gpu].sum(axis=1)
        found.append(loads.max() / loads.mean())
        most = max(most, max(np.bincount(row).max() for row in by_gpu))
    return found, most


def test_the_published_example_of_eplb():
    phy2log, log2phy, count = eq.eplb.rebalance_experts(WEIGHT, 16, 4, 2, 8)
    assert phy2log.tolist() == [
        [5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1],
        [7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1],
    ]
    assert log2phy.shape == (2, 12, count.max()) and count.sum(axis=1).tolist() == [16, 16]
    for layer in range(2):
        assert np.array_equal(count[layer], np.bincount(phy2log[layer]))
        for expert in range(12):
            slots = log2phy[layer, expert]
            assert sorted(slots[slots >= 0]) == np.flatnonzero(phy2log[layer] == expert).tolist()
            assert np.sum(slots >= 0) == count[layer, expert]


def test_plans_are_as_good_as_they_say_and_better_than_eplb(tmp_path):
    rng = np.random.default_rng(0)
    weight = rng.lognormal(0, 0.8, (3, 64))
    plan = eq.experts(weight, replicas=72, topology="flat:2*flat:4")
    found, most = ratios(plan.physical_to_logical, weight, 8)
    assert found == pytest.approx([layer["max_over_average"] for layer in plan.costs]) and most == 1
    eplb = eq.eplb.rebalance_experts(weight, 72, 1, 1, 8)[0]
    assert all(ours <= its + 1e-12 for ours, its in zip(found, ratios(eplb, weight, 8)[0]))
    assert np.array_equal(plan.counts, [np.bincount(row) for row in plan.physical_to_logical])
    for layer, expert in np.ndindex(plan.counts.shape):
        slots = plan.logical_to_physical[layer, expert]
        assert np.array_equal(slots[slots >= 0], np.flatnonzero(plan.physical_to_logical[layer] == expert))
    plan.write(tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text())
    assert document["physical_to_logical"] == plan.physical_to_logical.tolist()
    later = weight * rng.lognormal(0, 0.15, weight.shape)
    kept = eq.experts(later, 72, "flat:2*flat:4", previous=plan)
    moves = sum(layer["moves"] for layer in kept.costs)
    assert 0 < moves < sum(layer["moves"] for layer in kept.eplb_costs)
    for previous in (plan.physical_to_logical, tmp_path / "plan.json"):
        again = eq.experts(later, 72, "flat:2*flat:4", previous=previous)
        assert np.array_equal(again.physical_to_logical, kept.physical_to_logical)
    assert kept.to_pandas()["moves"].sum() == moves and "eplb_moves" in kept.to_pandas()
    assert plan.transfers is None and kept.transfers.shape == (moves, 4)
    old, new = (it.physical_to_logical.reshape(len(weight), 8, -1) for it in (plan, kept))
    for layer, expert, sender, receiver in kept.transfers:
        assert expert in old[layer, sender] and expert in new[layer, receiver] and expert not in old[layer, receiver]
    assert eq.experts(weight, 72, "flat:2*flat:4", previous=plan).transfers.shape == (0, 4)
    kept.write(tmp_path / "sglang.json", sglang=True)
    document = json.loads((tmp_path / "sglang.json").read_text())
    assert document == {"physical_to_logical_map": kept.physical_to_logical.tolist()}


def test_summaries_and_sizes_of_experts():
    plan = eq.experts(WEIGHT, 16, "flat:8")
    ratios = [layer["max_over_average"] for layer in plan.costs]
    assert plan.summary["worst_max_over_average"] == max(ratios) and "moves" not in plan.summary
    assert plan.summary["mean_max_over_average"] == pytest.approx(np.mean(ratios))
    for given, size in [(None, 42 << 20), ("2k", 2048), (100, 100)]:
        summary = eq.experts(WEIGHT[:, ::-1], 16, "flat:8", previous=plan, expert_bytes=given).summary
        assert summary["moves"] > 0 and summary["bytes_moved"] == size * summary["moves"]


def test_sources_and_groups():
    sources = np.zeros((2, 12))
    sources[0, :6] = sources[1, 6:] = 10
    plan = eq.experts(WEIGHT[0], 16, "flat:2*flat:4", sources=sources, groups=4)
    assert plan.costs[0]["cross_node_tokens"] <= plan.costs[0]["tokens"]
    assert plan.costs[0]["groups_on_several_nodes"] == 0
    with pytest.warns(UserWarning, match="groups are not kept on nodes: on flat:4, 2 groups cannot be divided among 4 nodes"):
        assert "groups_on_several_nodes" not in eq.experts(WEIGHT[0], 12, "flat:4", groups=2).costs[0]
    with pytest.warns(UserWarning, match="the previous plan was made for 8 PEs"):
        eq.experts(WEIGHT[0], 16, "flat:4", previous=plan)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"replicas": 15}, "use a multiple such as 16"),
        ({"replicas": 8}, "8 slots are fewer than 12 experts"),
        ({"replicas": 0}, "replicas is 0"),
        ({"weight": [[1.0, np.nan]]}, r"weight\[0, 1\] is nan"),
        ({"topology": "flat:x"}, "flat"),
        ({"previous": [[99] * 16]}, "names expert 99"),
        ({"previous": [[0] * 12]}, "the previous plan: its 12 slots cannot be the same number"),
        ({"previous": [[0], [0, 1]]}, "previous has rows of different lengths"),
        ({"sources": np.ones((3, 12))}, "the sources: found 3 rows of 12 numbers; give 1 row|give 8 rows of 12 numbers"),
        ({"weight": []}, "weight has 1 layers of 0 experts"),
        ({"weight": np.empty((0, 12))}, "weight has 0 layers of 12 experts"),
        ({"replicas": 2**63}, "replicas is 9223372036854775808; give a number of at most"),
        ({"previous": [list(range(12)) + [0] * 4] * 2, "sources": np.ones((8, 12)), "gamma": -1.0}, "gamma is -1.0; give numbers from 0 to 1e"),
        ({"gamma": 0.1}, "gamma has no effect without previous and sources; give them, or leave gamma out"),
        ({"previous": [[0]], "gamma": 0.1}, "gamma has no effect without sources; give it"),
        ({"tolerance": 0.1}, "tolerance has no effect without previous; give it, or leave tolerance out"),
        ({"expert_bytes": "42M"}, "expert_bytes has no effect without previous"),
        ({"previous": [[0]], "expert_bytes": "42X"}, "expert_bytes is '42X': expected bytes such as 4096, 44M or 1e9"),
        ({"weight": [[9e301] * 12]}, r"weight\[0, 0\] is 9e\+301; give numbers from 0 to 1e\+100"),
    ],
)
def test_wrong_arguments_are_value_errors(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        eq.experts(**{"weight": WEIGHT, "replicas": 16, "topology": "flat:8", **arguments})


def test_wrong_numbers_of_eplb():
    for numbers, sentence in [
        ((15, 4, 2, 8), "15 slots on 8 GPUs are not the same number on each; give a multiple of num_gpus"),
        ((16, 1, 16, 8), "8 GPUs on 16 nodes are not the same number on each; give a multiple of num_nodes"),
        ((14, 4, 2, 7), "7 GPUs on 2 nodes"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            eq.eplb.rebalance_experts(WEIGHT, *numbers)
    with pytest.raises(ValueError, match="weight has 0 layers of 12 experts"):
        eq.eplb.rebalance_experts(np.empty((0, 12)), 16, 4, 2, 8)
    with pytest.raises(TypeError, match="num_gpus is 'x'"):
        eq.eplb.rebalance_experts(WEIGHT, 16, 4, 2, "x")


def test_plans_of_others_are_judged_as_they_are(tmp_path):
    rng = np.random.default_rng(1)
    weight, machine = rng.lognormal(0, 0.8, (2, 32)), "flat:2*flat:4"
    eplb = eq.eplb.rebalance_experts(weight, 40, 1, 1, 8)[0]
    judged = eq.evaluate_plan(eplb, weight, machine)
    found, repeated = ratios(eplb, weight, 8)
    assert [layer["max_over_average"] for layer in judged.costs] == pytest.approx(found)
    assert (judged.summary["pes_with_repeated_expert"] > 0) == (repeated > 1)
    assert np.array_equal(judged.physical_to_logical, eplb) and judged.topology == machine
    # A plan for earlier loads.
    plan, later = eq.experts(weight, 40, machine), weight * rng.lognormal(0, 0.5, weight.shape)
    plan.write(tmp_path / "plan.json")
    for given in (plan, tmp_path / "plan.json"):
        today = eq.evaluate_plan(given, later)
        assert [layer["max_over_average"] for layer in today.costs] == pytest.approx(ratios(plan.physical_to_logical, later, 8)[0])
    moved = eq.evaluate_plan(eplb, weight, machine, previous=plan, expert_bytes=3)
    before, after = (it.reshape(2, 8, 5) for it in (plan.physical_to_logical, eplb))
    # EPLB's plan has an expert twice on a GPU, and each of the two needs a copy.
    new = sum((Counter(after[at].tolist()) - Counter(before[at].tolist())).total() for at in np.ndindex(2, 8))
    assert moved.summary["moves"] == new == len(moved.transfers) and moved.summary["bytes_moved"] == 3 * new
    # One row is the plan of one layer.
    assert eq.evaluate_plan(eplb[0], weight[0], machine).costs[0] == judged.costs[0]
    for arguments, sentence in [
        ((eplb, weight), "the plan names no machine; give topology"),
        ((eplb, weight, "flat:7"), "the plan: its 40 slots cannot be the same number on each of 7 PEs of flat:7"),
        ((eplb[:1], weight, machine), "the plan: found 1 layer"),
        ((np.zeros_like(eplb), weight, machine), "expert 1 of 32 has no replica"),
        ((eplb + 1, weight, machine), "the plan names expert 32; experts are 0 to 31"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            eq.evaluate_plan(*arguments)
    with pytest.raises(ValueError, match="expert_bytes has no effect without previous"):
        eq.evaluate_plan(eplb, weight, machine, expert_bytes=3)
    text = (tmp_path / "plan.json").read_text()
    (tmp_path / "other.json").write_text(text.replace(machine, "flit:8"))
    with pytest.raises(ValueError, match="the plan names a machine that cannot be used: .*flit.*; give topology"):
        eq.evaluate_plan(tmp_path / "other.json", weight)
    with pytest.warns(UserWarning, match="the plan was made for 8 PEs"):
        eq.evaluate_plan(plan, weight, "flat:4")
