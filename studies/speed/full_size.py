"""Run every adapter with models of published sizes and random weights, and record the outcome by device.

    python studies/speed/full_size.py [--device cpu|cuda] [--most GB] [--only mms-tts-eng,bark-small]

Each model is written to a folder, opened by its adapter in a separate process like a submission, and used to make one
short item. The outcome is stored in `benchmark/podeval/systems/adapters/full_size.json`, from which the tables of
docs/adapters.md are made (`python -m podeval.cli.generate_docs`). Models of more than `--most` gigabytes are left out.
As in the adapters, weights are float32 on a processor and bfloat16 on a GPU.
"""

import argparse
import datetime
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from studies.speed import full_size_models as models

CHECKOUT = Path(__file__).resolve().parents[2]
TABLE = CHECKOUT / "benchmark" / "podeval" / "systems" / "adapters" / "full_size.json"
SPOKEN = [
    {"speaker": "A", "text": "Good morning to you."},
    {"speaker": "B", "text": "It is a fine day."},
]
TOKENS = 48
"""Maximum number of tokens that a script writer generates, which is enough to show that it works."""


def main() -> None:
    """Run the models that fit, one after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--most", type=float, default=2.5, help="gigabytes of weights in memory")
    parser.add_argument("--only", default="", help="published names, separated by commas")
    parser.add_argument("--folder", type=Path, default=None, help="where models are written; removed after each")
    parser.add_argument("--step", nargs=2, metavar=("STEP", "NAME"), help="one step of one model, for this program")
    options = parser.parse_args()
    if options.step:
        step, name = options.step
        model = next(model for model in models.MODELS if model.name == name)
        run_step(step, model, options.device, options.folder)
        return
    wanted = {name for name in options.only.lower().split(",") if name}
    for model in models.MODELS:
        if wanted and model.published.rpartition("/")[2].lower() not in wanted and model.type not in wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="full-size-", dir=options.folder) as place:
            try_model(model, options.device, options.most, Path(place))


def try_model(model: models.FullSize, device: str, most: float, place: Path) -> None:
    """Run one model if it fits, and store the line with its outcome."""
    parameters = models.count_parameters(model)
    size = parameters * (4 if device == "cpu" else 2) / 1e9
    title = f"{model.task}, {model.published} ({parameters / 1e6:.0f} million parameters, {size:.1f} GB)"
    if size > most:
        print(f"{title}: left out: it is larger than --most {most:g}", flush=True)
        return
    print(title, flush=True)
    command = [sys.executable, __file__, "--device", device, "--folder", str(place), "--step"]
    begin = time.perf_counter()
    subprocess.run([*command, "write", model.name], check=True)
    written = time.perf_counter() - begin
    if code := subprocess.run([*command, "run", model.name], check=False).returncode:
        print(f"    its process ended with {code}; nothing is kept of it", flush=True)
        return
    line = json.loads((place / "line.json").read_bytes())
    print(f"    {json.dumps(line)} (written in {written:.0f} s)", flush=True)
    if line["error"] is None:
        keep(line)


def keep(line: dict[str, Any]) -> None:
    """Add a line to the table, replacing the line of the same model on the same kind of device."""
    lines = json.loads(TABLE.read_bytes()) if TABLE.exists() else []
    key = ("task", "type", "published", "device")
    rest = [old for old in lines if any(old[name] != line[name] for name in key)]
    order = {(model.task, model.published): number for number, model in enumerate(models.MODELS)}
    line = {name: value for name, value in line.items() if name != "error"}
    rest = sorted([*rest, line], key=lambda one: (order[one["task"], one["published"]], one["device"]))
    TABLE.write_text(json.dumps(rest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def run_step(step: str, model: models.FullSize, device: str, place: Path) -> None:
    """Write a model's files, or run its adapter on them, in this process."""
    if step == "write":
        models.write_model(model, place / "model", "float32" if device == "cpu" else "bfloat16")
        return
    (place / "line.json").write_text(json.dumps(run_adapter(model, device, place)))


def run_adapter(model: models.FullSize, device: str, place: Path) -> dict[str, Any]:
    """Have the adapter open the model and make one item; return the measurements."""
    from podeval.systems.adapters import generate, loading
    from podeval.systems.adapters.adapter import Job, Log

    dtypes: set[str] = set()
    load_plainly = loading.load_model

    def load(kind: str, folder: Path, device: str, **options: Any) -> Any:
        network = load_plainly(kind, folder, device, **options)
        dtypes.update(str(weights.dtype).removeprefix("torch.") for weights in network.parameters())
        return network

    loading.load_model = load
    file = write_job(model, device, place)
    begin = time.perf_counter()
    code = generate.run(Job.read(file), file)
    wall = time.perf_counter() - begin
    (made,) = Log(place / "out").finished().values()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    line = {
        "task": model.task,
        "type": model.type,
        "published": model.published,
        "source": model.source,
        "device": name_device(device),
        "dtype": " and ".join(sorted(dtypes)),
        "parameters": count_stored(place / "model") if model.type == "lora" else models.count_parameters(model),
        "memory_gb": round(peak, 2),
        "load_seconds": round(made.load_seconds or 0.0, 1),
        "wall_seconds": round(wall, 1),
        "made": describe(made),
        "commit": read_commit(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "error": made.error if code == 0 else f"exit code {code}",
    }
    if device == "cuda":
        import torch

        line["gpu_memory_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
    return line


def write_job(model: models.FullSize, device: str, place: Path) -> Path:
    """Write a job with one short item."""
    item: dict[str, Any] = {"id": "one", "language": "en"}
    match model.task:
        case "script-writer":
            item["prompt"] = "Write a podcast on bees."
            shorten(place / "model" / ("base" if model.type == "lora" else ""))
        case "speech-to-speech":
            item["user"] = [{"id": "t1", "audio": write_voice(place / "heard.wav")}]
            shorten(place / "model" / "language_model")
        case _:
            item["script"] = SPOKEN[:1] if model.type == "vits" else SPOKEN
    (place / "items.jsonl").write_text(json.dumps(item))
    job = {
        "adapter": model.task,
        "model_folder": "model",
        "items_file": "items.jsonl",
        "out_folder": "out",
        "device": "cuda:0" if device == "cuda" else "cpu",
        "item_seconds": 1800,
    }
    if model.type == "lora":
        job["base_folder"] = "model/base"
        shutil.move(place / "model" / "base", place / "base")
        job["base_folder"] = "base"
    (place / "job.json").write_text(json.dumps(job))
    return place / "job.json"


def shorten(folder: Path) -> None:
    """Limit a language model to a few tokens."""
    file = folder / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | {"max_new_tokens": TOKENS}))


def write_voice(path: Path) -> str:
    """Write a voice-like sound for a system to hear; return the file's name."""
    import soundfile

    soundfile.write(path, models._models.voice(1.5, 0), 16_000)
    return path.name


def count_stored(folder: Path) -> int:
    """Count the parameters in a folder's weights."""
    from safetensors import safe_open

    total = 0
    for root in (folder, folder.parent / "base"):
        for path in root.rglob("*.safetensors"):
            if path.parent.name == "voices":
                continue
            with safe_open(path, "pt") as tensors:
                names = tensors.keys()
                total += sum(_size(tensors.get_slice(name).get_shape()) for name in names)
    return total


def _size(shape: list[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def describe(made: Any) -> str:
    """Describe the output in words."""
    if made.error is not None:
        return ""
    if made.audio_seconds is not None:
        return f"{made.audio_seconds:.1f} s of sound"
    return f"{made.details.get('tokens')} tokens"


def name_device(device: str) -> str:
    """Name the device on which the models run."""
    if device == "cuda":
        import torch

        return f"1 × {torch.cuda.get_device_name(0)}"
    import platform

    return f"a processor, {len(os.sched_getaffinity(0))} cores, {platform.machine()}"


def read_commit() -> str:
    """Read the checkout's current commit."""
    done = subprocess.run(
        ["git", "-C", str(CHECKOUT), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    main()
