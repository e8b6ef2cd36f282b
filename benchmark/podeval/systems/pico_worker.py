"""The child process in which SVOX Pico speaks; run by its path.

Arguments: the folder that contains the package `py_nanotts`. Standard input: JSON,
`{"volume": factor, "lines": [[voice, speed, text], …]}`. Standard output: one record for the start, whose number is
the rate, then one per line: seconds taken (float64), a number of bytes (uint32), and this many bytes of 16-bit samples.
"""

import json
import struct
import sys
import time

HEAD = struct.Struct("<dI")
RATE = 16_000


def main() -> None:
    """Say every line of standard input."""
    sys.path.insert(0, sys.argv[1])
    from py_nanotts import NanoTTS

    engine = NanoTTS()
    job = json.load(sys.stdin.buffer)
    sys.stdout.buffer.write(HEAD.pack(0.0, RATE))
    for voice, speed, text in job["lines"]:
        begin = time.perf_counter()
        samples = engine.speak(text, voice, speed=speed, volume=job["volume"])
        sys.stdout.buffer.write(HEAD.pack(time.perf_counter() - begin, len(samples)))
        sys.stdout.buffer.write(samples)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
