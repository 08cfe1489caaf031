"""Data that tests share."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

TOP = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def charm_dump() -> Path:
    """A dump of LeanMD under Charm++: 1,053 objects on 2 PEs."""
    return TOP / "strategies/model/tests/data/leanmd_333_1053.dat.0"


@pytest.fixture(scope="session")
def steps() -> Path:
    """Several recorded steps."""
    return TOP / "apps/databases/amr.db"


@pytest.fixture
def matrix() -> csr_array:
    """64 tasks that send whole numbers of bytes, in one direction only for most pairs."""
    rng = np.random.default_rng(1)
    found = random_array((64, 64), density=0.05, rng=rng, format="csr")
    found.data = np.ceil(1000 * found.data)
    found.setdiag(0)
    found.eliminate_zeros()
    return csr_array(found)
