"""The child process in which a C engine speaks; it is run by its path and uses only the standard library.

Arguments: the engine's name, then for `espeak-ng` the shared library and its data folder, for `SVOX Pico` the folder
that contains the package `py_nanotts`. Standard input: JSON with the `lines` to say, each of which is a list of
arguments for the engine. Standard output: one record for the start, then one per line: seconds taken (float64), a
number (uint32), and that many bytes of 16-bit samples. The number in the first record is the sampling rate; it is not
followed by samples.
"""

import ctypes
import json
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

HEAD = struct.Struct("<dI")
PICO_RATE = 16_000
RATE, PITCH = 1, 3  # espeakRATE, espeakPITCH
_SYNCHRONOUS, _DO_NOT_EXIT, _UTF8 = 2, 0x8000, 1
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


def speak_by_espeak(job: dict[str, Any], library_file: str, data: str) -> Iterator[Any]:
    """Yield the rate, then the samples of each line, which is `[voice, pitch, words per minute, text]`.

    The job also has a `seed` and `parameters`, which are pairs of an id and a value.
    """
    library = ctypes.CDLL(library_file)
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, data.encode(), _DO_NOT_EXIT)
    if rate <= 0:
        sys.exit(f"espeak_Initialize returned {rate}; the data folder may be damaged: {data}")
    samples_of_line = bytearray()

    def keep(samples: int | None, count: int, events: int | None) -> int:
        if samples and count > 0:
            samples_of_line.extend(ctypes.string_at(samples, 2 * count))
        return 0

    callback = _CALLBACK(keep)  # kept in a variable, or it would be garbage-collected while C still calls it
    library.espeak_SetSynthCallback(callback)
    # Breathy voices draw noise, which would otherwise be seeded with the time of day.
    library.espeak_ng_SetRandSeed(ctypes.c_long(job["seed"]))
    yield rate
    for voice, pitch, words_per_minute, text in job["lines"]:
        samples_of_line.clear()
        # If the name is unknown, espeak-ng silently keeps the previous voice.
        if library.espeak_SetVoiceByName(voice.encode()):
            sys.exit(f"this espeak-ng has no voice {voice!r}")
        for parameter, value in ([RATE, words_per_minute], *job["parameters"], [PITCH, pitch]):  # a voice resets them
            library.espeak_SetParameter(parameter, value, 0)
        content = text.encode()
        if library.espeak_Synth(content, ctypes.c_size_t(len(content) + 1), 0, 1, 0, _UTF8, None, None):
            sys.exit("espeak_Synth refused the text")
        yield bytes(samples_of_line)


def speak_by_pico(job: dict[str, Any], folder: str) -> Iterator[Any]:
    """Yield the rate, then the samples of each line, `[voice, speed, text]`; the job also has a `volume` factor."""
    sys.path.insert(0, folder)
    from py_nanotts import NanoTTS

    engine = NanoTTS()
    yield PICO_RATE
    for voice, speed, text in job["lines"]:
        yield engine.speak(text, voice, speed=speed, volume=job["volume"])


ENGINES: dict[str, Callable[..., Iterator[Any]]] = {"espeak-ng": speak_by_espeak, "SVOX Pico": speak_by_pico}


def main() -> None:
    """Say every line of standard input."""
    name, *places = sys.argv[1:]
    spoken = ENGINES[name](json.load(sys.stdin.buffer), *places)
    begin = time.perf_counter()
    rate = next(spoken)
    sys.stdout.buffer.write(HEAD.pack(time.perf_counter() - begin, rate))
    begin = time.perf_counter()
    for samples in spoken:
        sys.stdout.buffer.write(HEAD.pack(time.perf_counter() - begin, len(samples)) + samples)
        sys.stdout.buffer.flush()
        begin = time.perf_counter()


if __name__ == "__main__":
    main()
