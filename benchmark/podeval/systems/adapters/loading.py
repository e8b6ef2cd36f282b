"""Load models with transformers: without the network, without code from their folder, and only from safetensors.

A copy of a model is on one device if it fits; otherwise accelerate spreads it over all GPUs.
"""

import hashlib
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from podeval.errors import BadInput
from podeval.models.device import choose_device as usual_device
from podeval.models.device import is_out_of_memory, require_device
from podeval.models.pretrained import load_from_folder, silence_transformers
from podeval.systems.adapters.adapter import Job
from podeval.systems.adapters.snapshot import check_files, count_weight_bytes, read_config
from podeval.systems.speech import Samples, SpeechFailed

CODEC = "audio_tokenizer"
"""Subfolder of a model's folder that contains its codec."""

_SHARE = 0.8
"""Share of a GPU's free memory that weights may fill; the rest is for computation."""


def derive_seed(seed: int, *location: str | int) -> int:
    """Derive a seed in 0..2^31-1 for a location, such as an item and a line in it.

    Random draws depend only on the seed and the item, not on other items or on the number of items generated at once.
    """
    text = "\x1f".join(map(str, (seed, *location)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def set_seed(seed: int) -> None:
    """Seed the random sources of a program: `random`, numpy's global generator, and torch if it is loaded."""
    random.seed(seed)
    np.random.seed(seed)  # the generator that programs use by default
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)


def choose_device(requested: str | None) -> str:
    """Choose the device for one copy: the job's device, otherwise this process's GPU, otherwise the CPU.

    Raises:
        BadInput: the device does not exist.
    """
    if requested is not None:
        return require_device(requested, f"the device {requested}", "leave it out")
    chosen = usual_device()
    rank = os.environ.get("LOCAL_RANK")
    return f"cuda:{rank}" if chosen == "cuda" and rank is not None else chosen


def count_fitting_copies(folder: Path, requested: str | None) -> int:
    """Count the copies of the model that fit on separate GPUs; 1 if there is no GPU or no copy fits."""
    import torch

    if requested is not None or os.environ.get("PODEVAL_DEVICE") or not torch.cuda.is_available():
        return 1
    count = torch.cuda.device_count()
    return count if all(_fits(folder, number) for number in range(count)) else 1


def load_model(kind: str, folder: Path, device: str) -> Any:
    """Load a model of the transformers class `kind`, ready for use.

    Raises:
        BadInput: the model cannot be loaded; the message gives the library's reason.
    """
    import torch

    on_gpu = device.startswith("cuda")
    options: dict[str, Any] = {"dtype": "auto" if on_gpu else torch.float32}
    if on_gpu and not _fits(folder, torch.device(device).index or 0):
        options["device_map"] = "auto"
    with translate_errors(folder):
        network = load_from_folder(kind, folder, use_safetensors=True, **options)
        return network.eval() if "device_map" in options else network.to(device).eval()


def open_codec(job: Job, title: str, kind: str) -> Path:
    """Return the folder with the codec of a job's model: `audio_tokenizer/` in the model's own folder, or the base.

    Raises:
        BadInput: neither exists, or it is not a codec of this `model_type`.
    """
    own = job.model_folder / CODEC
    codec = own if (own / "config.json").is_file() else job.base_folder
    if codec is None:
        raise BadInput(
            f"{title} needs its codec: specify the codec's repo under base, or put it into the model's {CODEC}/"
        )
    check_files(codec)
    if (other := read_config(codec).get("model_type")) != kind:
        raise BadInput(f"the codec of {title} is a {kind} model, not {other!r}")
    return codec


@contextmanager
def draw_sound(text: str, seed: int) -> Iterator[None]:
    """Seed the generators for the block, disable gradients, and translate errors raised by models and templates.

    Args:
        text: the words to be said, for the message.
        seed: the seed of every generator.

    Raises:
        SpeechFailed: the result cannot be decoded.
    """
    import torch

    set_seed(seed)
    with torch.inference_mode(), silence_transformers():
        try:
            yield
        except (RuntimeError, ValueError, LookupError, TypeError) as error:
            # A template is the repo's own program, so any error that it raises is the system's fault.
            if is_out_of_memory(error):
                raise
            raise SpeechFailed(f"the model's output for {text[:80]!r} cannot be decoded ({error})") from error


def read_wave(wave: Any, text: str) -> Samples:
    """Return a model's output as samples, shape (frames,).

    Args:
        wave: a tensor.
        text: the words to be said, for the message.

    Raises:
        SpeechFailed: the output is empty.
    """
    if wave is None or not wave.numel():
        raise SpeechFailed(f"the model stopped immediately and returned no audio for {text[:80]!r}")
    return np.asarray(wave.float().cpu().numpy(), np.float32).reshape(-1)


def require_room(inputs: Any, window: int, what: str) -> None:
    """Refuse inputs that do not fit into a model's window.

    Raises:
        BadInput: they do not fit; the message states their length.
    """
    length = int(inputs["input_ids"].shape[1])
    if length >= window:
        raise BadInput(f"{what} has {length} tokens, but the model's window is {window}; podeval never shortens a text")


def load_reader(kind: str, folder: Path) -> Any:
    """Load a tokenizer or processor of the transformers class `kind`.

    Raises:
        BadInput: it cannot be loaded; the message gives the library's reason.
    """
    with translate_errors(folder):
        return load_from_folder(kind, folder)


@contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    """Turn a library's complaint about a model's files into a clear message.

    Raises:
        BadInput: any error except insufficient memory occurred.
    """
    try:
        with silence_transformers():
            yield
    except Exception as error:
        if isinstance(error, BadInput) or is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())[:500] or type(error).__name__
        raise BadInput(f"the model in {folder.name} cannot be loaded: {reason}") from error


def _fits(folder: Path, gpu: int) -> bool:
    import torch

    free, _ = torch.cuda.mem_get_info(gpu)
    return count_weight_bytes(folder) <= _SHARE * free
