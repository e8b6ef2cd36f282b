"""Use a function in a Python file as a system, so a user with a model in Python needs to write only one function.

    speak(turns, voices, language) -> (samples, rate)       reads a script aloud
    write(prompt, language) -> text, or a list of turns     writes a script
    podcast(topic, language) -> (samples, rate)             makes a whole podcast
    answer(heard, language) -> (samples, rate[, words])     answers a person, turn by turn

Each of the `turns` has a `speaker` and a `text`; `voices` maps each speaker to the path of a reference recording, or
None. `heard` is the conversation so far, oldest first, each entry with `who` ("user" or "system"), `words` and, for the
person, the path of the `audio`. Samples are an array (frames,) or (frames, channels): floats of full scale ±1, or
16-bit integers. A function with a parameter `seed` gets the seed; for any other function, `random`, numpy and torch are
seeded.

The file is the user's own and runs in this process, with all the user's permissions.
"""

import hashlib
import inspect
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from podeval.errors import BadInput
from podeval.files import import_file
from podeval.systems.adapters.loading import set_seed
from podeval.systems.speech import (
    Ask,
    OwnMaker,
    Product,
    Samples,
    Speech,
    SpeechFailed,
    SpokenAnswer,
    SpokenAnswers,
    WrittenScript,
)
from podeval.text.reasoning import strip_reasoning
from podeval.text.script import Script

RATES = (1_000, 768_000)
"""Minimum and maximum sampling rate in Hz."""

_CHANNELS = 64
_SCALE = np.float32(2**15)
_EXAMPLE = "my_tts.py:speak"


@dataclass(frozen=True)
class HeardTurn:
    """A turn in the conversation; `audio` is the path of a person's recording, None for the system's answers."""

    who: Literal["user", "system"]
    words: str
    audio: str | None = None


class PythonSystem(OwnMaker[Product]):
    """A system that calls a function from a file.

    Args:
        path: the path of the file.
        function: the name of the function.
    """

    def __init__(self, path: Path, function: str) -> None:
        self._path, self._name = path, function
        self.sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        self._function = _load(path, function)
        self._takes_seed = _has_parameter(self._function, "seed")

    @property
    def generation(self) -> dict[str, Any]:
        """The file and the function; an edited file counts as a different system."""
        return {"system": "python", "file": self._path.name, "function": self._name, "sha256": self.sha256}

    def make_one(self, ask: Ask, seed: int) -> Product:
        """Call the function for an item."""
        set_seed(seed)
        begin = time.perf_counter()
        details: dict[str, Any] = {"seed": seed}
        if ask.prompt is not None:
            text, turns = self._read_script(self._call(seed, ask.prompt, ask.language))
            return WrittenScript(text, turns, time.perf_counter() - begin, details)
        if ask.script is not None:
            script = ask.spoken()
            voices = {who: ask.voices[who].audio if who in ask.voices else None for who in script.speakers}
            result = self._call(seed, list(script.turns), voices, ask.language)
            details["voices"] = {who: "reference" if path else "own" for who, path in voices.items()}
        elif ask.topic is not None:
            result = self._call(seed, ask.topic, ask.language)
        else:
            return self._converse(ask, seed)
        samples, rate = self._read_sound(result)
        return Speech(samples, rate, turns=(), wall_seconds=time.perf_counter() - begin, details=details)

    def _converse(self, ask: Ask, seed: int) -> SpokenAnswers:
        heard: list[HeardTurn] = []
        answers, wall = [], 0.0
        for turn in ask.user or ():
            heard.append(HeardTurn("user", turn.words, turn.audio))
            begin = time.perf_counter()
            result = self._call(seed, list(heard), ask.language)
            words = result[2] if isinstance(result, tuple) and len(result) == 3 else None
            samples, rate = self._read_sound(result[:2] if words is not None else result)
            seconds = time.perf_counter() - begin
            wall += seconds
            answers.append(SpokenAnswer(turn.id, Speech(samples, rate, (), seconds), words and str(words)))
            heard.append(HeardTurn("system", str(words or "")))
        return SpokenAnswers(tuple(answers), wall, details={"seed": seed})

    def _call(self, seed: int, *arguments: Any) -> Any:
        """Call the function.

        Raises:
            SpeechFailed: the function raised an error of any kind; the message names the line of the file.
        """
        try:
            return self._function(*arguments, **({"seed": seed} if self._takes_seed else {}))
        except Exception as error:
            what = _describe_error(error, self._path)
            raise SpeechFailed(f"{self._name} of {self._path.name} failed ({what})") from error

    def _read_sound(self, result: Any) -> tuple[Samples, int]:
        """Read a function's result as audio.

        Raises:
            SpeechFailed: the result is not (samples, rate), or is empty; the message states the actual and the expected
                result.
        """
        if not isinstance(result, tuple) or len(result) != 2:
            raise SpeechFailed(f"{self._name} returned {_describe(result)}; return (samples, rate in Hz)")
        sound, rate = result
        if isinstance(rate, bool) or not isinstance(rate, int | np.integer) or not RATES[0] <= rate <= RATES[1]:
            raise SpeechFailed(
                f"{self._name} returned the rate {rate!r}, not a whole number of Hz from {RATES[0]} to {RATES[1]}"
            )
        if hasattr(sound, "detach"):
            sound = sound.detach().cpu().numpy()
        try:
            samples = np.asarray(sound)
            whole = np.issubdtype(samples.dtype, np.integer)
            if whole and samples.dtype != np.int16:
                raise SpeechFailed(
                    f"{self._name} returned samples of type {samples.dtype}; return floats within ±1 or int16"
                )
            samples = np.asarray(samples, np.float32) / (_SCALE if whole else np.float32(1))
        except (ValueError, TypeError) as error:
            raise SpeechFailed(f"{self._name} returned {_describe(sound)} instead of an array of samples") from error
        if samples.ndim not in (1, 2) or not samples.size:
            raise SpeechFailed(f"{self._name} returned samples of shape {samples.shape}; return (frames, channels)")
        if samples.ndim == 2 and (samples.shape[1] > _CHANNELS or samples.shape[0] < samples.shape[1]):
            shape = f"{samples.shape}, channels first"
            raise SpeechFailed(f"{self._name} returned samples of shape {shape}; return (frames, channels): samples.T")
        return samples, int(rate)

    def _read_script(self, result: Any) -> tuple[str, list[dict[str, str]] | None]:
        """Read a function's result as a script: its text, and its turns if it has any."""
        if isinstance(result, str):
            text = strip_reasoning(result)
            if not text:
                raise SpeechFailed(f"{self._name} returned a text without words")
            return text, None
        try:
            script = Script.parse(result)
        except (BadInput, TypeError) as refusal:
            raise SpeechFailed(f"{self._name} returned {_describe(result)}, which is not a script: {refusal}") from None
        return script.lines, script.to_json()


def open_python(reference: str) -> PythonSystem:
    """Open `FILE.py:FUNCTION`.

    Raises:
        BadInput: there is no such file or function, the file cannot be imported, or the text does not name a function.
    """
    file, colon, function = reference.rpartition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        raise BadInput(f"--python takes FILE.py:FUNCTION, such as {_EXAMPLE}, not {reference!r}")
    path = Path(file)
    if not path.is_file():
        raise BadInput(f"there is no file {path}; --python takes FILE.py:FUNCTION, such as {_EXAMPLE}")
    return PythonSystem(path, function)


def _load(path: Path, function: str) -> Callable[..., Any]:
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as with `python FILE.py`, the file may import modules from its own folder
    try:
        module = import_file(path, f"podeval_own_{path.stem}")
    except Exception as error:
        raise BadInput(f"{path} cannot be imported ({_describe_error(error, path)}); correct the file") from error
    chosen = getattr(module, function, None)
    if not callable(chosen):
        functions = sorted(name for name, value in vars(module).items() if inspect.isfunction(value))
        choice = f"it defines {', '.join(functions)}" if functions else "it defines no functions"
        raise BadInput(f"{path} has no function {function!r}; {choice}")
    return chosen  # type: ignore[no-any-return]  # whatever is callable


def _has_parameter(function: Callable[..., Any], name: str) -> bool:
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some C callables have no signature
        return False


def _describe_error(error: BaseException, path: Path) -> str:
    """Describe an error, with the innermost line of the file in its traceback."""
    lines = [step.lineno for step in traceback.extract_tb(error.__traceback__) if step.filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines.append(error.lineno)
    where = f", line {lines[-1]}" if lines else ""
    return f"{type(error).__name__}{where}: {' '.join(str(error).split())[:300]}"


def _describe(value: Any) -> str:
    kind = type(value).__name__
    return f"{kind} of {len(value)}" if isinstance(value, tuple | list) else f"a value of type {kind}"
