"""Write a minute of speech for the other scripts: a demo script, spoken by the baseline that needs no weights.

python tests/performance/speech.py speech.wav
"""

import sys

import soundfile

from podeval import benchmarks
from podeval.systems.espeak_ng import EspeakNg

script = benchmarks.get("real_pod").items("demo")[0].script
assert script is not None
speech = EspeakNg().speak(script)
soundfile.write(sys.argv[1], speech.samples, speech.rate)
