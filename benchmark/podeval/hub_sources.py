"""The folders that are Hub repos in source form: in the wheel, or the checkout."""

from pathlib import Path

from podeval.errors import PodevalError


def locate_hub_source(name: str) -> Path:
    """The folder of that name, for wheels and editable installs alike.

    Raises:
        PodevalError: the installation lacks it.
    """
    package = Path(__file__).parent
    for candidate in (package / "_hub" / name, package.parents[1] / name):
        if candidate.is_dir():
            return candidate
    raise PodevalError(f"this installation of podeval lacks {name}/; reinstall it")
