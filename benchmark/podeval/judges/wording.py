"""Prompts with custom wordings: the text in a file replaces the system text and the request of a prompt.

    [system]
    You mark scripts.

    [request]
    Here is the script:
    {script}

Braces contain the names of the prompt's inputs, and of passages whose length depends on the material. Other braces are
not changed, so the examples of a paper's prompt can be copied. Without the line `[request]`, the whole text is the
request, and there is no system text. The schema of the answer, and the rules that separate material from instructions,
are added to every wording.
"""

import functools
import re
from dataclasses import replace

from podeval.errors import BadInput
from podeval.judges.prompt import Prompt

SYSTEM, REQUEST = "[system]", "[request]"
"""The heading lines above the two texts."""


def write_wording(prompt: Prompt) -> str:
    """Return a prompt as the text of a file."""
    return f"{SYSTEM}\n{prompt.system.strip()}\n\n{REQUEST}\n{_shorten(prompt).strip()}\n"


def list_inputs(prompt: Prompt) -> list[str]:
    """Return the names that a prompt's file must contain in braces, in order."""
    return list(dict.fromkeys(re.findall(r"\{(\w+)\}", _shorten(prompt))))


@functools.lru_cache(maxsize=256)
def reword(prompt: Prompt, wording: str) -> Prompt:
    """Return a prompt with the wording of a file, and with the same inputs and the same form of the answer.

    Without a wording, or with our own, the result is our own prompt.

    Raises:
        BadInput: an input is missing, or a name in braces is not an input.
    """
    if not wording:
        return prompt
    *head, request = f"\n{wording.strip()}\n".split(f"\n{REQUEST}\n", 1)
    system, inputs = "".join(head).strip().removeprefix(SYSTEM).strip(), list_inputs(prompt)
    texts = re.split(r"\{(\w+)\}", request.strip())
    needed = f"{prompt.family} asks about {', '.join(f'{{{name}}}' for name in inputs)}"
    if missing := [name for name in inputs if name not in texts[1::2]]:
        raise BadInput(f"{needed}; the request lacks {', '.join(f'{{{name}}}' for name in missing)}")
    if strange := [name for name in texts[1::2] if name not in inputs and not name.isdecimal()]:
        raise BadInput(f"{needed}, not about {{{strange[0]}}}; write it without braces if it is part of the text")
    passages = dict(prompt.passages)
    parts = [
        (passages.get(text, f"{{{text}}}") if text in inputs else f"{{{{{text}}}}}")
        if number % 2
        else text.replace("{", "{{").replace("}", "}}")
        for number, text in enumerate(texts)
    ]
    reworded = replace(prompt, version="own", system=system, template="".join(parts), source="a file of the user's")
    return prompt if write_wording(reworded) == write_wording(prompt) else reworded


def _shorten(prompt: Prompt) -> str:
    """Return the template with the names of its passages, and with single braces."""
    template = prompt.template
    for name, passage in prompt.passages:
        template = template.replace(passage, f"{{{name}}}")
    return template.replace("{{", "{").replace("}}", "}")
