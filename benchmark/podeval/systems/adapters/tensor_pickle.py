"""What may lie in the one pickle that is opened: `spk_dict.pt`, with the voices of Qwen2.5-Omni.

A pickle is a program, and names what it calls. This one may name tensors and nothing else: every instruction is looked
at before any is run. transformers then opens it with `weights_only`, which by itself refuses other names too.
"""

import pickletools
import re
import zipfile
from pathlib import Path

from podeval.errors import BadInput

VOICES_FILE = "spk_dict.pt"
MODEL_TYPE = "qwen2_5_omni"
"""The class of models that has such a file."""

_LARGEST = 64 * 2**20
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
"""Instructions that build values, and GLOBAL, whose names are looked at."""


def check(path: Path) -> None:
    """Refuse a file that is more than tensors, numbers and names in dictionaries.

    Raises:
        BadInput: it is; or it is too large, damaged, or of the form before torch 1.6.
    """
    name = path.name
    if path.stat().st_size > _LARGEST:
        raise BadInput(f"{name} is {path.stat().st_size} bytes; {_LARGEST} are the most")
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > _LARGEST:
                raise BadInput(f"{name} unpacks to more than {_LARGEST} bytes")
            (program,) = (member for member in archive.namelist() if member.endswith("/data.pkl"))
            instructions = list(pickletools.genops(archive.read(program)))
    except (zipfile.BadZipFile, ValueError, KeyError, NotImplementedError, RuntimeError) as error:
        raise BadInput(f"{name} is not what torch.save writes ({error or type(error).__name__})") from None
    for instruction, argument, _ in instructions:
        if instruction.name not in _PLAIN:
            raise BadInput(f"{name} may hold code (instruction {instruction.name}); only tensors may be in it")
        if instruction.name == "GLOBAL" and not _NAMES.fullmatch(str(argument)):
            raise BadInput(f"{name} may hold code (it names {argument!r:.80}); only tensors may be in it")
