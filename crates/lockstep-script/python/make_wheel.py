"""Builds the wheel: this package, and the program as the command that `pip install` brings.

    python3 make_wheel.py --binary target/release/lockstep --out target/wheel

The standard library is enough. The same input gives the same bytes: entries are sorted, and have one time.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import struct
import sys
import zipfile
from pathlib import Path
from typing import Dict, List, Tuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MACHINES = {62: "x86_64", 183: "aarch64"}
OLDEST_GLIBC = {"x86_64": (2, 5), "aarch64": (2, 17)}
"""What a program that needs no glibc, or a very old one, is said to need: the first that wheels knew."""

SHT_VERNEED = 0x6FFFFFFE
FIRST_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest that a zip file can say."""


def platform_of(program: bytes) -> str:
    """The platform that an ELF program runs on, as wheels name it: `manylinux_2_34_x86_64`."""
    if program[:5] != b"\x7fELF\x02" or program[5] != 1:
        raise SystemExit("the binary is no 64-bit little-endian ELF program")
    (machine,) = struct.unpack_from("<H", program, 18)
    if machine not in MACHINES:
        raise SystemExit(f"the binary is for ELF machine {machine}; known are {sorted(MACHINES)}")
    name = MACHINES[machine]
    major, minor = max([OLDEST_GLIBC[name], *glibc_versions(program)])
    return f"manylinux_{major}_{minor}_{name}"


def glibc_versions(program: bytes) -> List[Tuple[int, int]]:
    """The versions of glibc whose symbols the program needs."""
    found = []
    for name in needed_versions(program):
        match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", name)
        if match:
            found.append((int(match[1]), int(match[2])))
    return found


def needed_versions(program: bytes) -> List[str]:
    """All versions of symbols that the program needs of its libraries, such as `GLIBC_2.34`."""
    (table,) = struct.unpack_from("<Q", program, 40)
    entry_size, count = struct.unpack_from("<HH", program, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", program, table + index * entry_size) for index in range(count)]
    found = []
    for section in sections:
        kind, offset, link, libraries = section[1], section[4], section[6], section[7]
        if kind != SHT_VERNEED:
            continue
        strings = sections[link][4]
        at = offset
        for _ in range(libraries):
            _, versions, _, first, step = struct.unpack_from("<HHIII", program, at)
            inner = at + first
            for _ in range(versions):
                _, _, _, name, inner_step = struct.unpack_from("<IHHII", program, inner)
                start = strings + name
                found.append(program[start : program.index(b"\0", start)].decode())
                inner += inner_step
            at += step
    return found


def manifest() -> Dict[str, str]:
    """Version, licence and description, from the workspace's Cargo.toml."""
    text = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    package = text.split("[workspace.package]", 1)[1].split("\n[", 1)[0]
    return dict(re.findall(r'^(\w+) = "(.*)"$', package, re.MULTILINE))


def contents(program: bytes, platform: str) -> Dict[str, bytes]:
    """Every file of the wheel but its RECORD."""
    about = manifest()
    version = about["version"]
    files = {}
    for path in sorted(HERE.glob("lockstep/**/*.py")):
        files[path.relative_to(HERE).as_posix()] = path.read_bytes()
    files[f"lockstep-{version}.data/scripts/lockstep"] = program
    info = f"lockstep-{version}.dist-info"
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        files[f"{info}/licenses/{name}"] = (ROOT / name).read_bytes()
    files[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\n"
        f"Generator: lockstep make_wheel ({version})\n"
        "Root-Is-Purelib: false\n"
        f"Tag: py3-none-{platform}\n"
    ).encode()
    files[f"{info}/METADATA"] = (
        "Metadata-Version: 2.4\n"
        "Name: lockstep\n"
        f"Version: {version}\n"
        f"Summary: {about['description']}\n"
        f"License-Expression: {about['license']}\n"
        "License-File: LICENSE-APACHE\n"
        "License-File: LICENSE-MIT\n"
        "Requires-Python: >=3.9\n"
        "Description-Content-Type: text/markdown\n"
        "\n"
    ).encode() + (ROOT / "README.md").read_bytes()
    return files


def record(files: Dict[str, bytes], own_name: str) -> bytes:
    """The list of all files with their hashes, which installers check."""
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}")
    return "\n".join([*lines, f"{own_name},,", ""]).encode()


def build(binary: Path, out: Path) -> Path:
    """Writes the wheel and returns where it is."""
    program = binary.read_bytes()
    platform = platform_of(program)
    version = manifest()["version"]
    files = contents(program, platform)
    own_name = f"lockstep-{version}.dist-info/RECORD"
    files[own_name] = record(files, own_name)
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"lockstep-{version}-py3-none-{platform}.whl"
    partial = wheel.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, FIRST_TIME)
            mode = 0o755 if name.endswith("scripts/lockstep") else 0o644
            # The upper half holds Unix's mode, with the bit of a regular file.
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    partial.replace(wheel)
    return wheel


def main() -> None:
    parser = argparse.ArgumentParser(description="Builds the wheel of Lockstep.")
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/lockstep", help="the program")
    parser.add_argument("--out", type=Path, default=ROOT / "target/wheel", help="the folder for the wheel")
    options = parser.parse_args()
    if not options.binary.is_file():
        sys.exit(f"{options.binary} is not there: build it with `make release`")
    wheel = build(options.binary, options.out)
    print(f"{wheel}  {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
