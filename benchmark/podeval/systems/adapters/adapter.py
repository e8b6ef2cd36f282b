"""What an adapter is, and which adapters there are.

An adapter makes the models of one task work: it says which classes of model it can open, opens a folder of files
without running any code in it, and turns items into audio, scripts or answers. Nothing heavy is imported before a
model is opened.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module, util
from pathlib import Path
from typing import Any, Literal, Protocol

from podeval.errors import BadInput
from podeval.systems.adapters.job import Job
from podeval.systems.adapters.presets import Preset
from podeval.systems.speech import OutputMaker

Label = Literal["verified with real weights", "plumbing only"]
Makes = Literal["audio", "script", "answers"]


@dataclass(frozen=True)
class ModelClass:
    """A class of models that an adapter opens.

    Args:
        type: `model_type` in config.json.
        title: as people call it.
        about: what it can do, in one sentence.
        label: whether trained weights have been run through this code, or only tiny random ones.
    """

    type: str
    title: str
    about: str
    label: Label = "plumbing only"


class Adapter(Protocol):
    """The way one task's models are run."""

    task: str
    title: str
    makes: Makes
    about: str
    needs: tuple[str, ...]
    models: tuple[ModelClass, ...]

    def available(self) -> str | None:
        """Return None where its libraries are installed, else a sentence with the one command that helps."""

    def check(self, folder: Path, base: Path | None = None) -> None:
        """Check whether it can open a model, by the model's small files alone.

        Raises:
            BadInput: another class of model, weights in a form that is not read, or code in the folder.
        """

    def open(self, job: Job, preset: Preset) -> OutputMaker:
        """Load the model of a job.

        Raises:
            BadInput: as `check`; or it cannot be loaded, with the reason.
            ModelMissing: a library that this model needs is not installed.
        """


def label(adapter: Adapter) -> Label:
    """Return `verified with real weights` where that is true of every class of model, else `plumbing only`."""
    proven = adapter.models and all(model.label == "verified with real weights" for model in adapter.models)
    return "verified with real weights" if proven else "plumbing only"


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


def find_adapter(what: Any) -> Adapter:
    """Find the adapter of a task, of a kind of source, of a source, or of a submission document.

    Args:
        what: `text-to-speech`, `outputs` and so on; or an object with `kind` and perhaps `task`; or one with such a
            `source`.

    Raises:
        BadInput: there is no adapter for it: nothing is generated for reported figures, and people need none.
    """
    source = getattr(what, "source", what)
    name = source if isinstance(source, str) else getattr(source, "task", None) or getattr(source, "kind", None)
    if name == "human":
        name = "outputs"
    if name not in _MODULES:
        raise BadInput(f"there is no adapter for {name!r}; there are adapters for {', '.join(TASKS)}")
    adapter: Adapter = import_module(f"podeval.systems.adapters.{_MODULES[name]}").ADAPTER
    return adapter


def list_adapters() -> tuple[Adapter, ...]:
    """Return every adapter."""
    return tuple(find_adapter(task) for task in TASKS)
