"""Import Gradio without the work that it does for those who write components of its own.

At each import Gradio reads the source of its 80 components again and compares it with the interface files beside
them, which takes 1.2 of 3.1 s. It leaves alone what comes from no file, so nothing does while it is imported.
Import this module before any that imports Gradio.
"""

import inspect
import sys
from typing import Any

_getfile = inspect.getfile


def _refuse_components(thing: Any) -> str:
    """As `inspect.getfile`, but Gradio's components come from no file."""
    if (getattr(thing, "__module__", None) or "").startswith("gradio."):
        raise OSError("of Gradio")
    return _getfile(thing)


if "gradio" not in sys.modules:
    inspect.getfile = _refuse_components  # type: ignore[assignment]
    try:
        import gradio  # noqa: F401
    finally:
        inspect.getfile = _getfile
