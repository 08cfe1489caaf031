"""Writes `THIRD-PARTY.txt`, the notices about the crates in the compiled module; with `--check`, compares it.

The crates are those that `cargo metadata` lists for Linux on x86-64, without procedural macros and build scripts, which are not in the
module. If a crate may be used under the MIT licence, no other licence is needed.
"""

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
FILE = FOLDER / "THIRD-PARTY.txt"
TARGET = "x86_64-unknown-linux-gnu"
STARTS = ("license", "licence", "unlicense", "copying", "copyright", "notice")


def metadata():
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET]
    return json.loads(subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, text=True).stdout)


def linked(document):
    """The packages in the module that have a source, which those of this repository lack."""
    packages = {package["id"]: package for package in document["packages"]}
    nodes = {node["id"]: node for node in document["resolve"]["nodes"]}
    found, queue = set(), [document["resolve"]["root"]]
    while queue:
        name = queue.pop()
        is_macro = any("proc-macro" in target["kind"] for target in packages[name]["targets"])
        if name in found or is_macro:
            continue
        found.add(name)
        normal = (dep for dep in nodes[name]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"]))
        queue += [dep["pkg"] for dep in normal]
    with_source = (packages[name] for name in found if packages[name]["source"])
    return sorted(with_source, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """The texts of the licences of a package."""
    folder = Path(package["manifest_path"]).parent
    # zstd and memchr: COPYING is the other choice, or explains the choice.
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name.lower().startswith(STARTS))
    files = [path for path in files if path.suffix not in (".rs", ".py", ".toml")]
    if any(path.name.lower().startswith("license") for path in files):
        files = [path for path in files if not path.name.lower().startswith("copying")]
    of_mit = [path for path in files if "MIT" in path.name.upper()]
    licence = package["license"] or ""
    if "MIT" in licence and " AND " not in licence and of_mit:
        files = of_mit
    return ["\n".join(line.rstrip() for line in path.read_text(errors="replace").splitlines()).strip("\n") for path in files]


def notices():
    by_text, without = {}, []
    for package in linked(metadata()):
        label = f"{package['name']} {package['version']} ({package['license']})"
        found = texts(package)
        if not found:
            without.append(f"{label}, by {', '.join(package['authors'])}")
        for text in found:
            by_text.setdefault(" ".join(text.split()), (text, []))[1].append(label)
    page = (
        "THIRD-PARTY NOTICES\n\nThe compiled module of the Python package equipoise contains the crates named here and the\n"
        "standard library of Rust (MIT OR Apache-2.0). The licences of the crates follow; where a crate offers\n"
        "a choice that includes MIT, its MIT licence.\n\nGenerated from Cargo.lock and the packages by notices.py. Do not edit.\n\n"
        "Crates whose packages have no text of their licence:\n\n" + "\n".join(without) + "\n"
    )
    for text, users in sorted(by_text.values(), key=lambda section: section[1]):
        page += f"\n{'=' * 100}\n" + "\n".join(users) + f"\n\n{text}\n"
    return page


if __name__ == "__main__":
    page = notices()
    if sys.argv[1:] != ["--check"]:
        FILE.write_text(page)
    elif not FILE.exists() or FILE.read_text() != page:
        sys.exit(f"{FILE.name} is out of date; run python notices.py")
