"""Write a few minutes of speech for the other scripts: a dialogue of the demo in two voices, with its words next to it.

python studies/speed/speech.py speech.wav
"""

import sys
from pathlib import Path

import soundfile

from podeval import benchmarks
from podeval.systems.hibari_piper import HibariPiper

script = benchmarks.get("real_pod").items("demo")[0].script
assert script is not None
speech = HibariPiper().speak(script)
path = Path(sys.argv[1])
soundfile.write(path, speech.samples, speech.rate)
path.with_suffix(".txt").write_text(" ".join(turn.text for turn in script.turns), encoding="utf-8")
print(f"{path}: {speech.duration:.0f} s of two voices")
