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
        return database.objects["pe"]

    def later(database, machine, seed):
        begun.append("later")
        return database.objects["pe"]

    with pytest.raises(KeyboardInterrupt):
        eq.replay(charm_dump, [slow, later])
    time.sleep(1)
    assert begun == [0]
