"""Make the sample's Parquet file from `dialogues.json`: espeak-ng speaks the turns, in the schema of the source.

Run it in a checkout with the `baselines` extra: `python dataset_builders/mtalk_bench/sample/make.py`. The voice
engine's licence (GPL) does not extend to its output; words and audio are podeval's, CC BY 4.0.
"""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
from numpy.typing import NDArray

import datasets
from podeval.audio.resample import resample
from podeval.systems import registry
from podeval.text.script import Script

sys.path.insert(0, str(Path(__file__).parents[3]))
from studies.distortions import mix_music

RATE = 24_000
PHONE_BELOW_SPEECH_DB = 10.0
FOLDER = Path(__file__).parent
SCHEMA = datasets.Features(
    {name: datasets.Value("string") for name in ("type", "number", "turn", "source")}
    | {"audio": datasets.Audio(sampling_rate=RATE)}
    | {
        name: datasets.Value("string")
        for name in ("transcription", "arena_prompt", "rubric_prompt_general", "rubric_prompt_specific")
    }
).arrow_schema


def main() -> None:
    """Write the file."""
    rows = [
        {
            "type": dialogue["type"],
            "number": dialogue["number"],
            "turn": f"turn{turn}",
            "source": "question",
            "audio": {"bytes": _spoken(text, dialogue["voice"]), "path": f"{dialogue['number']}-turn{turn}.ogg"},
            "transcription": text,
            **{name: dialogue[name] for name in ("arena_prompt", "rubric_prompt_general", "rubric_prompt_specific")},
        }
        for dialogue in json.loads((FOLDER / "dialogues.json").read_text(encoding="utf-8"))
        for turn, text in enumerate(dialogue["turns"], 1)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), FOLDER / "data" / "test-00000-of-00001.parquet")


def _spoken(text: str, voice: int) -> bytes:
    """Return the words without their tags as Ogg, in one of six voices; with a phone where a tag says one rings."""
    words = re.sub(r"\(.*?\)", "", text).strip()
    # Voices go to speakers in order, so that silent speakers before this one choose its voice.
    silent: list[Any] = [{"speaker": str(number), "text": "a"} for number in range(voice)]
    speech = registry.get("espeak_ng").speak(Script.parse([*silent, {"speaker": str(voice), "text": words}]))
    last = speech.turns[-1]
    samples = speech.samples[int(last.start * speech.rate) : int(last.end * speech.rate), 0]
    samples = resample(samples, speech.rate, RATE)
    if "phone ringing" in text:
        samples = mix_music(samples, _phone(), RATE, PHONE_BELOW_SPEECH_DB)
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format="OGG", subtype="VORBIS")
    return file.getvalue()


def _phone() -> NDArray[np.float32]:
    """Return a second of ringing: two tones, twenty times a second on and off, then half a second of rest."""
    time = np.arange(RATE) / RATE
    bell = (np.sin(2 * np.pi * 1100 * time) + np.sin(2 * np.pi * 1350 * time)) * (np.sin(2 * np.pi * 20 * time) > 0)
    return np.concatenate([bell, np.zeros(RATE // 2)]).astype(np.float32)


if __name__ == "__main__":
    main()
