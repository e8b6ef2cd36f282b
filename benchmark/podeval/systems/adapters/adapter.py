"""What an adapter is, and which adapters there are.

An adapter makes the models of one task work: it says which classes of model it can open, opens a folder of files
without running any code in it, and turns items into audio, scripts or answers. Nothing heavy is imported before a
model is opened.
"""

import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from podeval.errors import BadInput
from podeval.systems.adapters.job import Job
from podeval.systems.adapters.presets import Preset
from podeval.systems.speech import OutputMaker


@dataclass(frozen=True)
class ModelClass:
    """A class of models that an adapter opens; only tiny ones with random weights have been run through this code.

    Args:
        type: `model_type` in config.json.
        title: the name by which people know it.
        about: what it can do, in one sentence.
        opened_by: the class here that opens it, as `module:name`; empty if the adapter opens all its models alike.
    """

    type: str
    title: str
    about: str
    opened_by: str = ""


@dataclass(frozen=True)
class Adapter:
    """The way one task's models are run.

    Args:
        task: the name of the task.
        title: the name by which people know it.
        models: the classes of models that it opens.
        check: checks whether it can open a model (its folder, and that of its base), by the model's small files alone;
            raises `BadInput` for another class of model, weights in a form that is not read, or code in the folder.
        open: loads the model of a job; raises `BadInput` as `check`, or with the reason why it cannot be loaded, and
            `ModelMissing` for a library that this model needs.
        packages: the libraries that all its models need.
    """

    task: str
    title: str
    models: tuple[ModelClass, ...]
    check: Callable[[Path, Path | None], None]
    open: Callable[[Job, Preset], OutputMaker]
    packages: tuple[str, ...] = ("torch", "transformers", "accelerate")

    def available(self) -> str | None:
        """Return None where its libraries are installed, else a sentence with the one command that helps."""
        return describe_missing(self.packages, f"the adapter for {self.task}")


def describe_missing(packages: Sequence[str], needed_by: str) -> str | None:
    """Return None where the packages are installed, else which are not and the command that brings them."""
    absent = [package for package in packages if util.find_spec(package) is None]
    if not absent:
        return None
    return f"{needed_by} needs {' and '.join(absent)}; install with `pip install 'podeval[reference]'`"


_MODULES = {
    "text-to-speech": "text_to_speech",
    "podcast": "podcast",
    "script-writer": "script_writer",
    "speech-to-speech": "speech_to_speech",
    "outputs": "outputs",
}

TASKS = tuple(_MODULES)
"""Every task there is an adapter for; `outputs` stands for files that were made elsewhere."""


def find_adapter(task: str) -> Adapter:
    """Find the adapter of a task.

    Raises:
        BadInput: there is none.
    """
    if task not in _MODULES:
        raise BadInput(f"there is no adapter for {task!r}; there are adapters for {', '.join(TASKS)}")
    adapter: Adapter = pkgutil.resolve_name(f"podeval.systems.adapters.{_MODULES[task]}:ADAPTER")
    return adapter


def list_adapters() -> tuple[Adapter, ...]:
    """Return every adapter."""
    return tuple(find_adapter(task) for task in TASKS)
