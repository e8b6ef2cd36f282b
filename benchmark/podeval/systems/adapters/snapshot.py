"""Fetch a submitted model's files at a pinned commit into a new folder, and check them before opening any of them.

Weights must be safetensors; code, pickles (except one that contains only tensors, `spk_dict.pt`) and links are refused,
as is `auto_map`, with which a config requests code from its repo. Files are checked when they are opened, whether or
not a gate has checked them before.
"""

import pickletools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.hub.repo_info import HEADER_MOST, parse_header, translate_errors
from podeval.text.json_text import parse_json

VOICES_FILE = "spk_dict.pt"
MODEL_TYPE = "qwen2_5_omni"
"""The model class whose voices are in `spk_dict.pt`."""

_LARGEST = 64 * 2**20
_PROGRAM_MOST, _INSTRUCTIONS_MOST, _MEMBERS_MOST = 2**20, 20_000, 4_096
"""Maximum number of bytes and instructions in a pickle, and of files in its archive; a voice dictionary has about a
hundred instructions.
"""
_NAMES = re.compile(
    r"collections OrderedDict|torch\._utils _rebuild_tensor_v2|torch (Float|Half|BFloat16|Double|Long|Int)Storage"
)
_PLAIN = frozenset(
    (
        *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "NONE", "NEWTRUE", "NEWFALSE", "INT", "LONG", "LONG1"),
        *("BININT", "BININT1", "BININT2", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "EMPTY_DICT", "DICT"),
        *("SETITEM", "SETITEMS", "EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2"),
        *("TUPLE3", "PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET", "MEMOIZE", "REDUCE", "BINPERSID"),
        "GLOBAL",
    )
)
"""Instructions that build values, and GLOBAL, which names a class or function; the name is checked."""


def check_voices_file(path: Path) -> None:
    """Refuse a file that contains more than tensors, numbers and names in dictionaries.

    A pickle is a program that names the classes and functions that it calls. This pickle may name only those for
    tensors, and every instruction is checked before any of them runs. transformers then opens the file with
    `weights_only`, which also refuses other names.

    Raises:
        BadInput: the file contains more, is too large or damaged, or is in the format used before torch 1.6.
    """
    name = path.name
    if path.stat().st_size > _LARGEST:
        raise BadInput(f"{name} has {path.stat().st_size} bytes, but at most {_LARGEST} are allowed")
    try:
        # Each file listed in the archive becomes an object of about a kilobyte when the archive is opened.
        if path.read_bytes().count(b"PK\1\2") > _MEMBERS_MOST:
            raise BadInput(f"{name} contains more than {_MEMBERS_MOST:,} files, too many for a dictionary of tensors")
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > _LARGEST:
                raise BadInput(f"{name} unpacks to more than {_LARGEST} bytes")
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise BadInput(f"{name} is compressed; save it again with torch.save, which does not compress")
            (program,) = (member for member in archive.infolist() if member.filename.endswith("/data.pkl"))
            if program.file_size > _PROGRAM_MOST:
                raise BadInput(f"{name} has a pickle of {program.file_size} bytes, too large for tensors alone")
            _check_program(archive.read(program), name)
    except (zipfile.BadZipFile, OSError, ValueError, KeyError, NotImplementedError, RuntimeError, MemoryError) as error:
        raise BadInput(f"{name} was not written by torch.save ({error or type(error).__name__})") from None


def _check_program(program: bytes, name: str) -> None:
    """Check each instruction in a pickle while reading it."""
    for count, (instruction, argument, _) in enumerate(pickletools.genops(program)):
        if count >= _INSTRUCTIONS_MOST:
            raise BadInput(
                f"{name} has more than {_INSTRUCTIONS_MOST:,} instructions, too many for a dictionary of tensors"
            )
        if instruction.name not in _PLAIN:
            raise BadInput(f"{name} may contain code (instruction {instruction.name}); it must contain only tensors")
        if instruction.name == "GLOBAL" and not _NAMES.fullmatch(str(argument)):
            raise BadInput(f"{name} may contain code (it refers to {argument!r:.80}); it must contain only tensors")


PATTERNS = (
    "*.json",
    "*.safetensors",
    "*.txt",
    "*.jinja",
    "*.tiktoken",
    "tokenizer*",
    "*tokenizer.model",
    "spiece.model",
    "*.npy",
)
"""Files that a model may consist of; `*.npy` files are voice presets (Bark), read without pickles."""

REFUSED = ("*.py", "*.pyc", "*.so", "*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.pickle", "*.msgpack", "*.h5")
"""Files that are never fetched, even if their names are allowed."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_JSON_MOST = 64 * 2**20
_VALUES_MOST = 4_000_000
"""Maximum number of values in a JSON file, at about 60 bytes each; the largest tokenizers have two million."""
_VOCABULARIES = ("tokenizer.json", "vocab.json")  # the keys in these files are the words of a vocabulary
_CODE = {pattern.removeprefix("*") for pattern in REFUSED}


def fetch(repo: str, revision: str, folder: Path, *, token: str | None = None) -> Path:
    """Download the allowed files of a model at one commit, into an otherwise empty folder.

    Args:
        repo: a model repo on the Hub.
        revision: a full commit hash.
        folder: a new or empty folder; a shared cache could contain files that another call admitted.
        token: a token for gated or private repos.

    Raises:
        BadInput: the revision is not a commit, the folder is not empty, the Hub does not provide the files, or they are
            not allowed in a model.
    """
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RemoteEntryNotFoundError

    if not _COMMIT.fullmatch(revision):
        raise BadInput(f"{repo} must be pinned to a full commit hash of 40 characters, not {revision!r}")
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty; give a new folder for the files of {repo}")
    try:
        with translate_errors(repo, revision, "model"):
            snapshot_download(
                repo,
                revision=revision,
                local_dir=folder,
                allow_patterns=list(PATTERNS),
                ignore_patterns=list(REFUSED),
                token=token,
                max_workers=4,
            )
            if _has_voices_file(folder):
                hf_hub_download(repo, VOICES_FILE, revision=revision, local_dir=folder, token=token)
    except RemoteEntryNotFoundError:
        raise BadInput(f"{repo} has no {VOICES_FILE} with the voices of the model") from None
    except (LocalEntryNotFoundError, HfHubHTTPError) as error:
        raise BadInput(f"the Hub did not return {repo} ({error.__cause__ or error}); try again later") from None
    check_files(folder)
    for path in (folder, *folder.rglob("*")):  # a sandbox reads the files as another user
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def check_files(folder: Path) -> None:
    """Refuse a folder with any file that could run code or lead out of the folder.

    Raises:
        BadInput: there is no such folder, or it contains a link, code, a pickle, an `auto_map`, or damaged JSON or
            safetensors.
    """
    if not folder.is_dir():
        raise BadInput(f"the model folder {folder} does not exist")
    for path in _files(folder):
        name = path.relative_to(folder)
        if path.is_symlink() or not path.is_file():
            raise BadInput(f"{name} is a link or not a regular file; a model's files must be in its folder")
        if str(name) == VOICES_FILE and _has_voices_file(folder):
            check_voices_file(path)
            continue
        if path.suffix.lower() in _CODE:
            raise BadInput(f"{name} may contain code; weights are read from .safetensors and settings from .json only")
        if path.suffix.lower() == ".json":
            data = _read_json(path, name)
            if name.name not in _VOCABULARIES and "auto_map" in collect_keys(data):
                raise BadInput(
                    f"{name} has an auto_map, which asks for code from the repo; podeval runs only classes that "
                    "are part of transformers, so remove it"
                )
        elif path.suffix.lower() == ".safetensors":
            check_safetensors(path)


def read_config(folder: Path, name: str = "config.json") -> dict[str, Any]:
    """Read a JSON object among a model's files.

    Raises:
        BadInput: the file does not exist or is not an object.
    """
    path = folder / name
    if not path.is_file():
        raise BadInput(f"the model has no {name}, which states the kind of model")
    config = _read_json(path, Path(name))
    if not isinstance(config, dict):
        raise BadInput(f"{name} is not a JSON object")
    return config


def require_type(folder: Path, types: dict[str, str], task: str) -> str:
    """Return a model's `model_type`, which must be a key of `types`; the values of `types` are titles.

    Raises:
        BadInput: the type is not one of these, or the folder lacks config.json or safetensors, or contains something
            that is refused.
    """
    check_files(folder)
    model_type = read_config(folder).get("model_type")
    if model_type not in types:
        titles = ", ".join(f"{title} ({kind})" for kind, title in types.items())
        raise BadInput(f"the adapter for {task} cannot open a model of type {model_type!r}; it opens {titles}")
    if not any(folder.rglob("*.safetensors")):
        raise BadInput("the model has no .safetensors file; convert its weights with save_pretrained")
    return str(model_type)


def collect_keys(data: Any) -> set[str]:
    """Collect the keys of every object in the data, at any depth."""
    keys: set[str] = set()
    left = [data]
    while left:
        match left.pop():
            case dict() as block:
                keys.update(map(str, block))
                left.extend(block.values())
            case list() as entries:
                left.extend(entries)
    return keys


def count_weight_bytes(folder: Path) -> int:
    """Return the size of the weights in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*.safetensors"))


def check_safetensors(path: Path) -> None:
    """Check a safetensors file by its header alone.

    Raises:
        BadInput: the file is not a safetensors file, or is shorter than its header says.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise BadInput(f"{path.name} is not a complete safetensors file; upload it again")
        if length > HEADER_MOST:
            raise BadInput(
                f"{path.name} has a header of {length} bytes, but at most {HEADER_MOST} are allowed; save the weights "
                "in more shards"
            )
        try:
            claimed = parse_header(file.read(length)).claimed
        except ValueError:
            raise BadInput(
                f"{path.name} has a header that cannot be read; save it with the safetensors library"
            ) from None
    if 8 + length + claimed != size:
        raise BadInput(f"{path.name} is {size} bytes, but its header states a different size; upload it again")


def _files(folder: Path) -> Iterator[Path]:
    """List everything below a folder except the metadata that `huggingface_hub` stores about the download."""
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if inside[:2] == (".cache", "huggingface") or (path.is_dir() and not path.is_symlink()):
            continue
        yield path


def _has_voices_file(folder: Path) -> bool:
    """Return whether a model belongs to the class whose voices are in a pickle of tensors."""
    return (folder / "config.json").is_file() and read_config(folder).get("model_type") == MODEL_TYPE


def _read_json(path: Path, name: Path) -> Any:
    if path.stat().st_size > _JSON_MOST:
        raise BadInput(f"{name} is {path.stat().st_size} bytes of JSON, but at most {_JSON_MOST} are allowed")
    try:
        return parse_json(path.read_bytes(), _VALUES_MOST)
    except ValueError as error:
        raise BadInput(f"{name} is not JSON ({error})") from None
