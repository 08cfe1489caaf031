"""Runs the notebooks of this folder and compares what they print with what they show.

Cells are plain Python, so no kernel is needed. ``python run.py --write`` stores what they print.
"""

import contextlib
import io
import json
import os
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def outputs(text: str) -> list[dict]:
    """The outputs of a cell that printed this text."""
    return [{"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}] if text else []


def run(path: Path, write: bool) -> int:
    """Runs a notebook. Returns the number of cells that printed something else than they show."""
    notebook, names, different = json.loads(path.read_text()), {"__name__": "__main__"}, 0
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
        found = outputs(printed.getvalue())
        if found != cell["outputs"] and not write:
            different += 1
            print(f"{path.name}, cell {number} prints:\n{printed.getvalue()}")
        cell["outputs"] = found
    if write:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return different


def main() -> int:
    """Runs all notebooks."""
    os.chdir(FOLDER)
    paths = sorted(FOLDER.glob("*.ipynb"))
    different = sum(run(path, sys.argv[1:] == ["--write"]) for path in paths)
    if different:
        print(f"{different} cells print something else than they show; check, then run: python {Path(__file__).name} --write")
    print(f"{len(paths)} notebooks ran")
    return int(different > 0 or not paths)


if __name__ == "__main__":
    sys.exit(main())
