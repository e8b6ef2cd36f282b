"""The child process in which libespeak-ng speaks; run by its path, with only the standard library.

Arguments: the shared library and its data folder. Standard input: JSON,
`{"seed": n, "parameters": [[id, value], …], "lines": [[voice, pitch, words a minute, text], …]}`. Standard
output: one record for the start, then one per line: seconds taken (float64), a number (uint32), and this many bytes of
16-bit samples. The first record's number is the sampling rate and no samples follow it.
"""

import ctypes
import json
import struct
import sys
import time

HEAD = struct.Struct("<dI")
RATE, PITCH = 1, 3  # espeakRATE, espeakPITCH
_SYNCHRONOUS, _DO_NOT_EXIT, _UTF8 = 2, 0x8000, 1
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


def main() -> None:
    """Say every line of standard input."""
    begin = time.perf_counter()
    library = ctypes.CDLL(sys.argv[1])
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, sys.argv[2].encode(), _DO_NOT_EXIT)
    if rate <= 0:
        sys.exit(f"espeak_Initialize gave {rate}; the data folder may be damaged: {sys.argv[2]}")
    samples_of_line = bytearray()

    def keep(samples: int | None, count: int, events: int | None) -> int:
        if samples and count > 0:
            samples_of_line.extend(ctypes.string_at(samples, 2 * count))
        return 0

    callback = _CALLBACK(keep)  # kept in a name, or it is collected while C still calls it
    library.espeak_SetSynthCallback(callback)
    job = json.load(sys.stdin.buffer)
    # Breathy voices draw noise, whose seed is else the time of day.
    library.espeak_ng_SetRandSeed(ctypes.c_long(job["seed"]))
    sys.stdout.buffer.write(HEAD.pack(time.perf_counter() - begin, rate))
    for voice, pitch, words_per_minute, text in job["lines"]:
        begin = time.perf_counter()
        samples_of_line.clear()
        _say(library, voice, [[RATE, words_per_minute], *job["parameters"], [PITCH, pitch]], text.encode())
        sys.stdout.buffer.write(HEAD.pack(time.perf_counter() - begin, len(samples_of_line)))
        sys.stdout.buffer.write(samples_of_line)
        sys.stdout.buffer.flush()


def _say(library: ctypes.CDLL, voice: str, parameters: list[list[int]], text: bytes) -> None:
    # An unknown name leaves the voice before it in place without a sound of protest.
    if library.espeak_SetVoiceByName(voice.encode()):
        sys.exit(f"this espeak-ng has no voice {voice!r}")
    for parameter, value in parameters:  # choosing a voice resets them
        library.espeak_SetParameter(parameter, value, 0)
    if library.espeak_Synth(text, ctypes.c_size_t(len(text) + 1), 0, 1, 0, _UTF8, None, None):
        sys.exit("espeak_Synth refused the text")


if __name__ == "__main__":
    main()
