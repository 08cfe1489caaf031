"""The lock of the interpreter, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time

import equipoise as eq
import pytest

# Takes 30 s without optimisation.
LARGE = "import equipoise as eq; eq.map('mesh:64x64', 'torus:64x64', balancer='SwapLB')"

BUSY = """
import equipoise as eq

def busy(database, machine, seed):
    try:
        print('begin', flush=True)
        while True:
            pass
    finally:
        print('left', flush=True)
"""

FORK = """
import multiprocessing
import equipoise as eq

def work(seed):
    graph = eq.Machine('graph:mesh:8x8')
    return eq.map('mesh:8x8', graph, seed=seed).pe.tolist()

expected = work(0)
with multiprocessing.get_context('fork').Pool(2) as pool:
    assert pool.map_async(work, [0, 1, 2, 0]).get(timeout=60)[3] == expected
assert work(0) == expected
"""


def test_other_threads_run_while_a_strategy_computes():
    ticks, is_over = [], threading.Event()

    def tick():
        while not is_over.wait(0.002):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    mapping = eq.map("mesh:24x24", "torus:24x24", balancer="PoiseLB:quality=fast")
    end = time.monotonic()
    is_over.set()
    thread.join()
    assert sum(begin < tick < end for tick in ticks) >= min(3, int(mapping.seconds / 0.02))


def test_several_threads_compute():
    found = {}

    def work(seed):
        found[seed] = eq.map("mesh:8x8", "torus:8x8", balancer="RandomLB", seed=seed).pe.tolist()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 4 and found[0] != found[1]


def nested(depth):
    """A strategy that asks the next one down to PoiseLB."""

    def assign(database, machine, seed):
        assert threading.current_thread().name.startswith("caller")
        return eq.map("mesh:8x8", "torus:8x8", nested(depth - 1) if depth else "PoiseLB", seed=seed, max_objects=1).pe

    return assign


@pytest.mark.parametrize("workers", ["1", "2"])
def test_strategies_in_python_may_map_in_several_threads(workers):
    code = (
        "import threading, equipoise as eq, test_threads\n"
        "def work(seed):\n"
        "    found.append(eq.map('mesh:8x8', 'torus:8x8', test_threads.nested(3), seed=seed).costs['hop_bytes'])\n"
        "found = []\n"
        "threads = [threading.Thread(target=work, args=(0,), name=f'caller {at}') for at in range(6)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]\n"
        "assert len(found) == 6 and found == [eq.map('mesh:8x8', 'torus:8x8').costs['hop_bytes']] * 6, found\n"
    )
    folder = os.path.dirname(os.path.abspath(__file__))
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100, cwd=folder, env={**os.environ, "RAYON_NUM_THREADS": workers})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="systems with fork")
def test_children_of_fork_compute():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], check=True, timeout=100)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("is_caught", [False, True])
def test_ctrl_c_interrupts_a_strategy_in_python(is_caught):
    call = "eq.map('mesh:8x8', 'torus:8x8', busy)"
    caught = f"try:\n    {call}\nexcept KeyboardInterrupt:\n    print(eq.map('mesh:2x2', 'flat:4').pe.max())\n"
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY + (caught if is_caught else call)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "begin\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    if is_caught:
        assert (process.returncode, output, errors) == (0, "left\n3\n", "")
    else:
        assert process.returncode == -signal.SIGINT and output == "left\n"
        assert errors.splitlines()[-1] == "KeyboardInterrupt" and "in busy" in errors


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_interrupts_a_strategy():
    process = subprocess.Popen(
        [sys.executable, "-c", f"print('begin', flush=True); {LARGE}; print('end')"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "begin\n"
    time.sleep(0.5)
    assert process.poll() is None, "the search takes long enough to be interrupted"
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors and "end" not in output
    assert time.monotonic() - begin < 5


def test_no_further_strategy_begins_after_an_interrupt(charm_dump):
    begun = []

    def slow(database, machine, seed):
        begun.append(seed)
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.5)
        begun.append("after the interrupt")
        return database.objects["pe"]

    def later(database, machine, seed):
        begun.append("later")
        return database.objects["pe"]

    with pytest.raises(KeyboardInterrupt):
        eq.replay(charm_dump, [slow, later])
    time.sleep(1)
    assert begun == [0]
