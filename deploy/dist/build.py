#!/usr/bin/env python3
"""Puts together what a release publishes: `make dist`.

For each program an archive with it, completions, manual pages, licences of ours and of everything that is
linked in; the Python wheel; and the checksums of all. The name of an archive says for which machine it is, and, where the
program is not static, the oldest glibc that it runs on. The same program gives the same bytes.
"""

import argparse
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SHELLS = {"bash": "lockstep.bash", "zsh": "_lockstep", "fish": "lockstep.fish"}
LICENCE = re.compile(r"^(licen[cs]e|copying|notice|unlicense)", re.IGNORECASE)


def output(command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def machine(program):
    """Processor and C library, as the archive's name says it: x86_64-linux-static, x86_64-linux-glibc2.34."""
    header = output(["readelf", "--file-header", program])
    processor = "aarch64" if "AArch64" in header else "x86_64"
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", output(["readelf", "--version-info", program]))
    if not versions:
        return f"{processor}-linux-static"
    newest = max((int(major), int(minor)) for major, minor in versions)
    return f"{processor}-linux-glibc{newest[0]}.{newest[1]}"


def linked():
    """The packages that are linked into the program, without our own: what `cargo metadata` says of each."""
    host = re.search(r"host: (\S+)", output(["rustc", "--version", "--verbose"])).group(1)
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host]
    metadata = json.loads(output(command))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [id for id, package in packages.items() if package["name"] == "lockstep" and id in nodes]
    seen = set()
    while waiting:
        id = waiting.pop()
        if id in seen:
            continue
        seen.add(id)
        for dependency in nodes[id]["deps"]:
            # Not what only tests or build scripts use.
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    found = [packages[id] for id in seen if packages[id]["source"]]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def licences():
    """One text: every package that is linked in, under which terms, and their words."""
    parts = ["Lockstep contains these packages, under these terms.\n"]
    texts = {}
    for package in linked():
        terms = package["license"] or package["license_file"] or "see its source"
        parts.append(f"{package['name']} {package['version']}: {terms}; {package['repository'] or 'no repository'}")
        for path in sorted(Path(package["manifest_path"]).parent.iterdir()):
            if path.is_file() and LICENCE.match(path.name):
                text = path.read_text(errors="replace").strip()
                texts.setdefault(text, []).append(f"{package['name']} {package['version']} ({path.name})")
    for text, users in texts.items():
        parts.append(f"\n{'=' * 80}\n{', '.join(users)}\n{'-' * 80}\n{text}")
    return "\n".join(parts) + "\n"


def archive(name, files):
    """A compressed archive of {path: (contents, mode)} in a folder of that name; no date and no owner go in."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, (contents, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mode = len(contents), mode
            tar.addfile(entry, io.BytesIO(contents))
    return gzip.compress(out.getvalue(), 9, mtime=0)


def packed(program, terms):
    """The archive of a program: its name and its bytes."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        files = {"lockstep": (program.read_bytes(), 0o755)}
        subprocess.run([program, "man", "--out", folder / "man"], check=True)
        for page in (folder / "man").iterdir():
            files[f"man/man1/{page.name}"] = (page.read_bytes(), 0o644)
    for shell, name in SHELLS.items():
        files[f"completions/{name}"] = (output([program, "completions", shell]).encode(), 0o644)
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"]:
        files[name] = ((ROOT / name).read_bytes(), 0o644)
    files["LICENSES-OF-DEPENDENCIES.txt"] = (terms, 0o644)
    version = output([program, "--version"]).split()[1]
    name = f"lockstep-{version}-{machine(program)}"
    return f"{name}.tar.gz", archive(name, files)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=Path, nargs="+", help="the programs, built for release")
    parser.add_argument("--out", type=Path, required=True, help="folder that the files go to")
    parser.add_argument("--wheel", type=Path, help="the wheel to publish beside the archives")
    args = parser.parse_args()
    for program in args.programs:
        if not program.is_file():
            sys.exit(f"{program} is not there: build it first")
    args.out.mkdir(parents=True, exist_ok=True)
    terms = licences().encode()
    published = dict(packed(program.resolve(), terms) for program in args.programs)
    if args.wheel:
        published[args.wheel.name] = args.wheel.read_bytes()
    sums = ""
    for name, contents in sorted(published.items()):
        (args.out / name).write_bytes(contents)
        sums += f"{hashlib.sha256(contents).hexdigest()}  {name}\n"
        print(f"{args.out / name}  {len(contents) / 1e6:.1f} MB")
    (args.out / "SHA256SUMS").write_text(sums)


if __name__ == "__main__":
    main()
