"""The code of the page *Python* of the book runs in the order of the page."""

import re
import shutil

import equipoise as eq
import numpy as np
from conftest import TOP


def test_the_code_of_the_page_runs(matrix, charm_dump, tmp_path, monkeypatch, capsys):
    page = (TOP / "docs/src/python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 5
    shutil.copy(charm_dump, tmp_path / "dump.dat.0")
    shutil.copy(TOP / "apps/databases/pic.db", tmp_path)
    monkeypatch.chdir(tmp_path)
    weight = np.random.default_rng(0).lognormal(0, 0.8, (2, 256))
    names = {"np": np, "csr": matrix, "w": np.linspace(1, 2, 64), "sizes": np.full(64, 1 << 20), "weight": weight}
    for number, block in enumerate(blocks):
        exec(compile(block, f"python.md, block {number}", "exec"), names)
    assert isinstance(names["mapping"], eq.Mapping) and (tmp_path / "map.html").exists() and (tmp_path / "plan.json").exists()
    assert names["plan"].physical_to_logical.shape == (2, 288)
    assert "Recommended" in capsys.readouterr().out
