"""The files of the Score tab: example recordings, and reports on measurements."""

from __future__ import annotations

import io
import json
from functools import cache
from typing import Any

import numpy as np
import soundfile
from audio_routes import answer_sound_bytes
from fastapi import APIRouter, Request
from fastapi.responses import Response
from website import CurrentSite, limit

from podeval.arena import ArenaRefused, refusal
from podeval.benchmarks.records import locate_data
from podeval.errors import CodedSentence
from podeval.texts import write_sentence

routes = APIRouter(include_in_schema=False)

EXAMPLES = ("reader", "readers", "faults")
"""The examples; the texts of the tab describe each of them."""
_VOICES = "real_pod_voices.json"
_PAUSE = 0.35
_GAIN, _HOLE = 3.0, (0.30, 0.33)
"""Gain of the example with faults before clipping at full scale, and the part that is missing from this example."""


@cache
def read_example(name: str) -> tuple[bytes, str, int]:
    """Read an example as a FLAC file, with its words and number of speakers.

    All examples are made from LibriTTS-R's recordings in `podeval.benchmarks` (CC BY 4.0), whose words are known.

    Args:
        name: one of `EXAMPLES`.
    """
    voices: list[dict[str, Any]] = json.loads(locate_data(_VOICES).read_bytes())["voices"]
    women = [voice for voice in voices if voice["gender"] == "female"]
    men = [voice for voice in voices if voice["gender"] != "female"]
    chosen = [women[0]] if name == "reader" else [women[0], men[0]]
    parts, rate = [], 0
    for voice in chosen:
        samples, rate = soundfile.read(io.BytesIO(locate_data(voice["file"]).read_bytes()), dtype="float32")
        parts += [samples, np.zeros(round(_PAUSE * rate), np.float32)]
    sound = np.concatenate(parts[:-1])
    if name == "faults":
        sound = np.clip(sound * _GAIN, -1.0, 1.0)
        start, end = (round(at * len(sound)) for at in _HOLE)
        sound[start:end] = 0.0
    file = io.BytesIO()
    soundfile.write(file, sound, rate, format="FLAC", subtype="PCM_16")
    words = "\n".join(f"Reader {number}: {voice['words']}" for number, voice in enumerate(chosen, start=1))
    return file.getvalue(), words if len(chosen) > 1 else chosen[0]["words"], len(chosen)


RATE = "60/minute"
_GONE = CodedSentence(
    "this report no longer exists, because reports are kept for an hour; measure again", code="report-gone"
)


@routes.get("/score/examples/{name}.flac", dependencies=[limit(RATE, "examples")])
def example(request: Request, name: str) -> Response:
    """Send an example."""
    if name not in EXAMPLES:
        raise ArenaRefused(refusal.UNKNOWN, write_sentence("no-such-example"))
    # Browsers cannot seek to a defect in audio that is sent without ranges.
    return answer_sound_bytes(read_example(name)[0], request.headers.get("range", ""), "audio/flac")


@routes.get("/score/reports/{name}.html", dependencies=[limit(RATE, "score reports")])
def report(site: CurrentSite, name: str) -> Response:
    """Send a report as a file to save, which is never opened as a page of this site."""
    content = site.services.score_reports.read(name)
    if content is None:
        raise ArenaRefused(refusal.UNKNOWN, _GONE)
    headers = {"Content-Disposition": 'attachment; filename="podeval-report.html"', "Cache-Control": "no-store"}
    return Response(content, media_type="text/html", headers=headers)
