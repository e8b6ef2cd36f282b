"""The part that PodBench's two stages share: the variant that judges as the paper and its code do."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from podeval.text.script import Script

Variant = Literal["default", "podbench"]

CUT = 16_000
"""Characters of a script that the paper's judge reads."""

_LEAST_KEPT = 0.8
_SENTENCE_END = re.compile(r"[.!?。！？…][\"'”’」』)）]*\s*")
_CUT_NOTICE = "[The rest of the script is left out, as it is too long.]"


def get_sampling(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the paper's sampling for its variant; high effort is set in the judge's own YAML file, under `extra`."""
    if parameters.get("variant") != "podbench":
        return {}
    return {"temperature": 1.0, "top_p": 0.95, "max_tokens": 16_384}


def cut_script(script: Script, variant: Variant) -> tuple[str, bool]:
    """Return the part of a script that the judge reads, and whether it was cut.

    The paper's code cuts at 16,000 characters, back to the end of a sentence where that keeps four fifths of them.
    """
    text = script.lines
    if variant != "podbench" or len(text) <= CUT:
        return text, False
    kept = text[:CUT]
    ends = [end.end() for end in _SENTENCE_END.finditer(kept)]
    if ends and ends[-1] > _LEAST_KEPT * CUT:
        kept = kept[: ends[-1]]
    return f"{kept.rstrip()}\n{_CUT_NOTICE}", True
