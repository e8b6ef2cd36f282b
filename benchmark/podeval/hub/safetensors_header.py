"""The header of a safetensors file, whose owner is a stranger: bounded in bytes, values, and numbers.

Parsed JSON takes up to fifty times its size, so its values are counted before it is parsed. What real models need: 97 %
of the thousand most popular ones stay below 100 kB (huggingface_hub, 2023). Of a mixture of experts in four bits with
80 billion parameters, one of ten shards describes 22,000 tensors in 2.8 MB; with 30 billion, a single file describes
74,000 in 9.1 MB.
"""

import math
from dataclasses import dataclass

from podeval.text.json_text import parse_json

HEADER_MOST = 12 * 2**20
"""Maximum bytes of a header."""

_VALUES_MOST = 1_000_000
_DIMENSIONS_MOST = 64
_NUMBER_MOST = 2**60


@dataclass(frozen=True)
class SafetensorsFile:
    """The content that a header states; `claimed` is the offset in bytes at which its tensors end."""

    parameters: int
    claimed: int


def parse_header(content: bytes) -> SafetensorsFile:
    """Parse the header of a safetensors file, without the eight bytes before it.

    Raises:
        ValueError: it is no header, has more values than any model's, or states what cannot be.
    """
    entries = parse_json(content, _VALUES_MOST)
    try:
        tensors = [tensor for name, tensor in entries.items() if name != "__metadata__"]
        shapes, ends = [tensor["shape"] for tensor in tensors], [tensor["data_offsets"][1] for tensor in tensors]
        numbers = [*ends, *(length for shape in shapes for length in shape)]
    except (AttributeError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"it does not describe tensors ({type(error).__name__}: {error})") from None
    # Before anything is multiplied: the product of many long numbers takes minutes.
    possible = all(type(number) is int and 0 <= number < _NUMBER_MOST for number in numbers)
    if not possible or any(len(shape) > _DIMENSIONS_MOST for shape in shapes):
        raise ValueError("it states lengths that no tensor has")
    parameters = sum(map(math.prod, shapes))
    if parameters >= _NUMBER_MOST:
        raise ValueError("it states more parameters than any model has")
    return SafetensorsFile(parameters, max(ends, default=0))
