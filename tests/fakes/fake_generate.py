"""Stands in for `podeval.systems.adapters.generate`: a second of tone for each item, quickly, with the same log.

What goes wrong is said by the model's folder: `behaviour.json` holds `{"items": {item: what it does there}}`, and how
loud it is (`loudness`), how much that differs from seed to seed (`jitter`), and how long an item takes (`seconds`).
"""

import json
import math
import os
import random
import struct
import sys
import time
import wave
from pathlib import Path

RATE = 8_000
SEED = 0


def tone(path: Path, pitch: float, seconds: float = 0.5, loudness: float = 1.0) -> None:
    frames = [round(8_000 * loudness * math.sin(2 * math.pi * pitch * n / RATE)) for n in range(int(seconds * RATE))]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(struct.pack(f"<{len(frames)}h", *frames))


def finish(out: Path, **line: object) -> None:
    with (out / "generated.jsonl").open("a") as log:
        log.write(json.dumps({"schema_version": 1, "seed": SEED, "wall_seconds": 0.01, **line}) + "\n")
        log.flush()
        os.fsync(log.fileno())


def main() -> None:
    global SEED
    job = json.loads(Path(sys.argv[1]).read_text())
    (SEED,) = job["seeds"]
    out, model = Path(job["out_folder"]), Path(job["model_folder"])
    about = json.loads((model / "behaviour.json").read_text()) if (model / "behaviour.json").exists() else {}
    for line in Path(job["items_file"]).read_text().splitlines():
        item = json.loads(line)["id"]
        time.sleep(about.get("seconds", 0.0))
        if code := about.get("items", {}).get(item):
            exec(code, {"out": out, "item": item, "finish": finish, "tone": tone, "model": model, "job": job})
            continue
        loudness = about.get("loudness", 1.0) * (1 + about.get("jitter", 0.0) * random.Random(f"{SEED}/{item}").gauss())
        tone(out / f"{item}.wav", 200 + 10 * len(item) + sum(map(ord, item)) % 50, loudness=loudness)
        finish(out, item=item, audio=f"{item}.wav")


main()
