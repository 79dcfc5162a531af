"""Layers of images, and images made of them, as containerd imports them."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CHUNK_BYTES = 1 << 20
_EPOCH = 1767225600
"""Modification time of all files, seconds: the same content makes the same layer."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image that was not put together yet.

    Attributes:
        name: With a tag; the repository begins with `localhost/`, so that nothing looks for it
            in a registry.
        layers: Uncompressed tar files, the lowest one first.
        config: As in an image's configuration: `Entrypoint`, `Cmd`, `Env`, `User` and so on.
    """

    name: str
    layers: Sequence[Path]
    config: Mapping[str, Any]

    @property
    def repository(self) -> str:
        return self.name.rpartition(":")[0]

    @property
    def tag(self) -> str:
        return self.name.rpartition(":")[2]

    def configuration(self, digests: Mapping[Path, str]) -> bytes:
        """Its configuration, as JSON, with the digests of its layers."""
        return json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": self.config,
                "rootfs": {
                    "type": "layers",
                    "diff_ids": [f"sha256:{digests[layer]}" for layer in self.layers],
                },
                "history": [{"created_by": layer.name} for layer in self.layers],
            }
        ).encode()


def write_archive(archive: Path, images: Sequence[Image]) -> None:
    """Write images in the form of `docker save`; a layer that several have is there once."""
    layers = dict.fromkeys(layer for image in images for layer in image.layers)
    digests = {layer: _digest(layer) for layer in layers}
    manifest = []
    with tarfile.open(archive, "w") as tar:
        for image in images:
            configuration = image.configuration(digests)
            name = f"{hashlib.sha256(configuration).hexdigest()}.json"
            _add_bytes(tar, name, configuration)
            manifest.append(
                {
                    "Config": name,
                    "RepoTags": [image.name],
                    "Layers": [f"{digests[layer]}.tar" for layer in image.layers],
                }
            )
        for layer, digest in digests.items():
            tar.add(layer, f"{digest}.tar")
        _add_bytes(tar, "manifest.json", json.dumps(manifest).encode())


def write_layer(path: Path, source: Path, *, at: str = "") -> None:
    """Make a layer of all files below a directory; everything belongs to root.

    `at` is where in the image the directory's content is, without a leading slash.
    """
    with tarfile.open(path, "w") as tar:
        for parent in reversed(Path(at).parents if at else []):
            if parent != Path():
                _add_directory(tar, str(parent))
        for file in sorted(source.rglob("*")):
            name = str(Path(at) / file.relative_to(source))
            tar.add(file, name, recursive=False, filter=_owned_by_root)


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mtime = _EPOCH
    return member


def _add_directory(tar: tarfile.TarFile, name: str) -> None:
    member = tarfile.TarInfo(name)
    member.type = tarfile.DIRTYPE
    member.mode = 0o755
    member.mtime = _EPOCH
    tar.addfile(member)


def _add_bytes(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
