"""Measure the WER and CER of good systems on Real-Pod's demo scripts: the source of `reach.DEMO` in
`metrics/speech/wer`.

    python studies/usual_range.py WORK hibari_piper=6 kokoro=3

A system speaks the given number of the six scripts; a dialogue that exists in WORK is not spoken again. Kokoro requires
`podeval models install --profile kokoro`.
"""

import sys
from pathlib import Path

import soundfile

from podeval import benchmarks
from podeval.metrics import catalogue
from podeval.recording import Recording
from podeval.systems import registry


def main(work: Path, systems: dict[str, int]) -> None:
    """Print the values of each dialogue, and their range."""
    rows: list[tuple[float, float]] = []
    for system, dialogues in systems.items():
        for item in benchmarks.get("real_pod").items("demo")[:dialogues]:
            path = work / f"{system}_{item.id}.wav"
            if not path.exists():
                speech = registry.get(system).speak(item.script)
                soundfile.write(path, speech.samples, speech.rate, subtype="PCM_16")
            values = catalogue.get("wer")(
                {"recording": Recording.open(path), "reference_text": item.script.text}, {}
            ).values
            rows.append((values["wer"], values["cer"]))
            print(f"{system} {item.id}: WER {rows[-1][0]:.4f}, CER {rows[-1][1]:.4f}", flush=True)
    for name, values in zip(("WER", "CER"), zip(*rows, strict=True), strict=True):
        print(f"{name} of {len(rows)} dialogues: {min(values):.4f} to {max(values):.4f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), {pair.split("=")[0]: int(pair.split("=")[1]) for pair in sys.argv[2:]})
