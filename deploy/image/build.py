#!/usr/bin/env python3
"""Builds container images of a program without a container daemon: `make image`.

An image is a list of archives (layers) and two JSON documents that name them by their hashes, so a Python without
packages is enough. Two images come of it, in one folder:

- `lockstep.tar`: the program, the shared libraries that it names, certificates, and nothing else: no shell, no package
  manager. It runs as a user without rights, on a root file system that may be read-only. The file is an OCI layout and
  also what `docker load`, `podman load`, `ctr images import`, `minikube image load` and `skopeo` take.
- `layer.tar.gz`: the program alone, as one layer to put on top of another image such as Ray's
  (`crane append --base rayproject/ray:2.60.0-py312 --new_layer layer.tar.gz`), or see the Dockerfile beside this file.

The same program gives the same bytes: files are sorted, and no date or owner of this machine goes in.
"""

import argparse
import gzip
import hashlib
import io
import json
import platform
import re
import subprocess
import sys
import tarfile
from pathlib import Path

# Whoever runs it in a container: nobody's number elsewhere, and the one that other images without a shell use.
USER = 65532
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
CERTIFICATES = Path("/usr/share/ca-certificates/mozilla")


def libraries(program):
    """What the program needs to be loaded, as it lies on this machine: {path: contents}."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    if "not found" in listed:
        sys.exit(f"{program} cannot be loaded here:\n{listed}")
    paths = re.findall(r"(?:=> )?(/\S+) \(0x", listed)
    return {path: Path(path).read_bytes() for path in paths}


def certificates():
    """The public authorities of Debian's package, without any that this machine trusts besides."""
    found = sorted(CERTIFICATES.glob("*.crt"))
    if not found:
        sys.exit(f"{CERTIFICATES} is empty: install ca-certificates")
    return b"".join(path.read_bytes() for path in found)


def base_files(program):
    """Everything but the program itself: {path: (contents, mode)}; a folder has no contents."""
    files = {path: (contents, 0o755) for path, contents in libraries(program).items()}
    files["/etc/ssl/certs/ca-certificates.crt"] = (certificates(), 0o644)
    files["/etc/passwd"] = (f"lockstep:x:{USER}:{USER}::/home/lockstep:/sbin/nologin\n".encode(), 0o644)
    files["/etc/group"] = (f"lockstep:x:{USER}:\n".encode(), 0o644)
    files["/etc/nsswitch.conf"] = (b"hosts: files dns\n", 0o644)
    files["/tmp"] = (None, 0o1777)
    # What a runtime mounts needs a place where the root is read-only.
    files.update({path: (None, 0o755) for path in ["/proc", "/dev", "/sys"]})
    files["/home/lockstep"] = (None, 0o755)
    return files


def layer(files):
    """An archive of the files and of the folders that they lie in."""
    folders = {str(parent): (None, 0o755) for path in files for parent in Path(path).parents if str(parent) != "/"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, (contents, mode) in sorted({**folders, **files}.items()):
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.mode = mode
            if path == "/home/lockstep":
                entry.uid = entry.gid = USER
            if contents is None:
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            else:
                entry.size = len(contents)
                archive.addfile(entry, io.BytesIO(contents))
    return out.getvalue()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def document(value):
    return json.dumps(value, indent=1, sort_keys=True).encode()


def image(layers, version, machine, level):
    """The blobs of an image and the description of its manifest."""
    packed = [gzip.compress(data, compresslevel=level, mtime=0) for data in layers]
    config = document(
        {
            "architecture": machine,
            "os": "linux",
            "config": {
                "User": f"{USER}:{USER}",
                "Entrypoint": ["/usr/local/bin/lockstep"],
                "WorkingDir": "/home/lockstep",
                "Env": ["PATH=/usr/local/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
                "Labels": {"org.opencontainers.image.title": "lockstep", "org.opencontainers.image.version": version},
            },
            "rootfs": {"type": "layers", "diff_ids": [digest(data) for data in layers]},
        }
    )
    kind = "application/vnd.oci.image"

    def described(data, media):
        return {"mediaType": f"{kind}.{media}", "digest": digest(data), "size": len(data)}

    manifest = document(
        {
            "schemaVersion": 2,
            "mediaType": f"{kind}.manifest.v1+json",
            "config": described(config, "config.v1+json"),
            "layers": [described(data, "layer.v1.tar+gzip") for data in packed],
        }
    )
    return [config, *packed, manifest], described(manifest, "manifest.v1+json")


def archive(blobs, manifest, name):
    """One file with the OCI layout, and Docker's own description of the same blobs."""
    config, *layers, _ = blobs

    def place(data):
        return "blobs/sha256/" + digest(data).removeprefix("sha256:")

    tagged = {**manifest, "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}}
    files = {
        "oci-layout": document({"imageLayoutVersion": "1.0.0"}),
        "index.json": document({"schemaVersion": 2, "manifests": [tagged]}),
        "manifest.json": document([{"Config": place(config), "RepoTags": [name], "Layers": [place(l) for l in layers]}]),
        **{place(data): data for data in blobs},
    }
    return layer({f"/{path}": (contents, 0o644) for path, contents in files.items()})


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("program", type=Path)
    arguments.add_argument("--out", type=Path, required=True, help="folder for the images")
    arguments.add_argument("--name", help="name and tag (lockstep:VERSION)")
    arguments.add_argument("--level", type=int, default=6, help="how hard layers are packed, from 1 to 9 (6)")
    options = arguments.parse_args()
    machine = MACHINES.get(platform.machine())
    if machine is None:
        sys.exit(f"no images for {platform.machine()}: one of {', '.join(MACHINES)}")
    said = subprocess.run([options.program, "--version"], capture_output=True, text=True, check=True).stdout
    version = said.split()[1]
    name = options.name or f"lockstep:{version}"
    program = layer({"/usr/local/bin/lockstep": (options.program.read_bytes(), 0o755)})
    blobs, manifest = image([layer(base_files(options.program)), program], version, machine, options.level)
    options.out.mkdir(parents=True, exist_ok=True)
    whole, part = options.out / "lockstep.tar", options.out / "layer.tar.gz"
    whole.write_bytes(archive(blobs, manifest, name))
    part.write_bytes(blobs[2])
    print(f"{name} {manifest['digest']}")
    print(f"{whole}: {whole.stat().st_size / 1e6:.1f} MB")
    print(f"{part}: {part.stat().st_size / 1e6:.1f} MB, a layer for other images")


if __name__ == "__main__":
    main()
