"""`python -m podeval.systems.adapters.generate JOB.json`: open a model, generate the items, and log each item once it
is finished.

The process does not use the network. It may be killed at any time; another run generates the items that are not in its
log. With several GPUs, it starts a copy of itself on each through accelerate. It exits with 0 when every item has a
line, including failed ones; with 2 and a sentence if the model or the job cannot be used (`refused.json` also contains
the sentence, and names the party at fault); with 3 if a copy died.
"""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from podeval.errors import BadInput, ModelMissing, PodevalError
from podeval.files import lock_folder, write_json
from podeval.models.device import free_memory, is_out_of_memory
from podeval.systems.adapters.adapter import (
    TRIES,
    Adapter,
    Cause,
    Generated,
    GeneratedAnswer,
    Job,
    Log,
    NotPrepared,
    find_adapter,
)
from podeval.systems.adapters.loading import choose_device, count_fitting_copies
from podeval.systems.adapters.presets import Preset, get_preset
from podeval.systems.speech import (
    Ask,
    OutputMaker,
    Product,
    Speech,
    SpeechFailed,
    WrittenScript,
    list_speeches,
    write_audio,
)

REFUSED = "refused.json"
_COPY = "PODEVAL_GENERATE_COPY"
_AGAIN = 5.0

T = TypeVar("T")
R = TypeVar("R")


class TookTooLong(PodevalError):
    """An item was not finished in time."""


class OutOfMemory(PodevalError):
    """A single item does not fit into memory."""


@contextlib.contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Interrupt the code in the block when its time is up, between two steps of the interpreter.

    Raises:
        TookTooLong: the time ran out.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise TookTooLong(f"the model did not finish the item within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, interrupt)
    # The interruption is repeated, because a library may catch the first one and continue.
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Batches:
    """Processes as many items at once as memory allows, halving their number after each failure.

    Attributes:
        size: the largest batch size that has not run out of memory so far.
    """

    size: int

    def over(
        self, items: Sequence[T], work: Callable[[Sequence[T]], R]
    ) -> Iterator[tuple[Sequence[T], R | PodevalError]]:
        """Yield every batch with the result of the work on it, or with the error.

        A failed batch is tried again item by item, so an item never fails because of a different item.
        """
        rest = list(items)
        while rest:
            batch = rest[: self.size]
            result = _try(batch, work)
            if isinstance(result, OutOfMemory) and len(batch) > 1:
                self.size = len(batch) // 2
                continue
            rest = rest[len(batch) :]
            if isinstance(result, PodevalError) and len(batch) > 1:
                yield from (([item], _try([item], work)) for item in batch)
            else:
                yield batch, result


def _try(batch: Sequence[T], work: Callable[[Sequence[T]], R]) -> R | PodevalError:
    """Return the result, or the error."""
    try:
        return work(batch)
    except PodevalError as error:
        return error
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
    # This is outside the except block, because the error's frames keep alive the tensors that did not fit.
    free_memory()
    return OutOfMemory("a single item does not fit into memory; use a larger machine or a smaller model")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a job file; return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _without_network()
    job: Job | None = None
    try:
        if len(words) != 1:
            raise BadInput("usage: python -m podeval.systems.adapters.generate JOB.json")
        job = Job.read(Path(words[0]))
        return run(job, Path(words[0]))
    except (BadInput, ModelMissing, PermissionError) as refusal:
        reason = str(refusal)
        if isinstance(refusal, PermissionError):
            reason = f"this process is not permitted to read or write {refusal.filename}; change its permissions"
        print(reason, file=sys.stderr)
        if job is not None and job.out_folder.is_dir():
            is_system = isinstance(refusal, BadInput) and not isinstance(refusal, NotPrepared)
            text = json.dumps({"reason": reason, "cause": "system" if is_system else "ours"}, ensure_ascii=False)
            (job.out_folder / REFUSED).write_text(text, encoding="utf-8")
        return 2


def run(job: Job, file: Path) -> int:
    """Generate the items in a job that are not in its log yet; return the exit code.

    Raises:
        BadInput: the job, its items, its settings or its model cannot be used.
        ModelMissing: a library is not installed; the message names the command that installs it.
    """
    adapter, settings, asks = find_adapter(job.adapter), get_preset(job.preset), job.asks()
    if (absent := adapter.available()) is not None:
        raise ModelMissing(absent)
    log = Log(job.out_folder)
    if os.environ.get(_COPY) is not None:
        _make_share(job, adapter, settings, log, _open_work(log, asks, job.seeds))
        return 0
    with lock_folder(job.out_folder):
        (job.out_folder / REFUSED).unlink(missing_ok=True)
        work = _open_work(log, asks, job.seeds)
        if not work:
            return 0
        adapter.check(job.model_folder, job.base_folder)
        # Supplied outputs do not need a model, and therefore no GPU.
        fitting = count_fitting_copies(job.model_folder, job.device) if adapter.packages else 1
        copies = min(job.processes or fitting, len(work))
        if copies > 1:
            return _start_copies(file, copies)
        _make(job, adapter, settings, log, work)
        return 0


def _make_share(job: Job, adapter: Adapter, settings: Preset, log: Log, work: Sequence[tuple[Ask, int]]) -> None:
    """Generate this copy's share of the items."""
    from accelerate import PartialState

    _die_with_parent()
    state = PartialState(cpu=job.device == "cpu")
    try:
        with state.split_between_processes(work) as mine:
            _make(job, adapter, settings, log, mine)
    finally:
        state.destroy_process_group()


def _die_with_parent() -> None:
    """End this copy when its launcher ends, so that it does not write at the same time as a later copy."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # not on Linux
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _open_work(log: Log, asks: Sequence[Ask], seeds: Sequence[int]) -> list[tuple[Ask, int]]:
    """List the items without a line; an item that killed its process too often gets a line that says so."""
    finished, deadly = log.finished(), log.died_on()
    work = []
    for seed in seeds:
        for ask in asks:
            if (ask.id, seed) in finished:
                continue
            if (ask.id, seed) in deadly:
                reason = f"the process died {TRIES} times on this item; the model may need more memory than available"
                log.finish(Generated(item=ask.id, seed=seed, error=reason, cause="ours"))
                continue
            work.append((ask, seed))
    return work


def _make(job: Job, adapter: Adapter, settings: Preset, log: Log, work: Sequence[tuple[Ask, int]]) -> None:
    if not work:
        return
    begin = time.perf_counter()
    maker = adapter.open(job, settings)
    load, hardware = time.perf_counter() - begin, _hardware(job)
    provenance = {"preset": settings.settings(), "versions": _versions()}
    batches = Batches(min(maker.at_once, job.batch or maker.at_once))
    for seed in dict.fromkeys(seed for _, seed in work):
        asks = [ask for ask, item_seed in work if item_seed == seed]

        def attempt(batch: Sequence[Ask], seed: int = seed) -> Sequence[Product]:
            log.begin([(ask.id, seed) for ask in batch])
            return _make_in_time(maker, batch, seed, job.item_seconds)

        for batch, result in batches.over(asks, attempt):
            results: Sequence[Product | Exception] = [result] * len(batch) if isinstance(result, Exception) else result
            for ask, one in zip(batch, results, strict=True):
                line = _build_line(log, ask, seed, one)
                details = {**provenance, **line.details}
                log.finish(line.model_copy(update={"load_seconds": load, "hardware": hardware, "details": details}))


def _make_in_time(maker: OutputMaker, batch: Sequence[Ask], seed: int, seconds: float) -> Sequence[Product]:
    """Process a batch within its time limit.

    Raises:
        SpeechFailed: the model failed; its library may raise any kind of error.
    """
    try:
        with limit_time(seconds * len(batch)):
            return maker.make(batch, seed)
    except (RuntimeError, ValueError, LookupError, ArithmeticError) as error:
        # After an error inside CUDA, every subsequent call fails, so this process must end and be restarted.
        if is_out_of_memory(error) or "CUDA error" in str(error):
            raise
        reason = " ".join(str(error).split())[:300]
        raise SpeechFailed(f"the model failed ({type(error).__name__}: {reason})") from error


def _build_line(log: Log, ask: Ask, seed: int, result: Product | Exception) -> Generated:
    """Build the line for an item whose files have been written."""
    if isinstance(result, Exception):
        # Insufficient memory and missing libraries are our fault; every other failure is the system's.
        cause: Cause = "ours" if isinstance(result, OutOfMemory | ModelMissing) else "system"
        return Generated(item=ask.id, seed=seed, error=str(result) or type(result).__name__, cause=cause)
    speeches = list_speeches(result)
    if any(not np.all(np.isfinite(speech.samples)) for speech in speeches):
        return Generated(item=ask.id, seed=seed, error="the model returned NaN or infinite samples", cause="system")
    seconds = sum(speech.duration for speech in speeches) if speeches else None
    return Generated(
        item=ask.id,
        seed=seed,
        **_keep_files(log.folder, f"{ask.id}.{seed}", result),
        wall_seconds=result.wall_seconds,
        audio_seconds=seconds,
        rtf=result.wall_seconds / seconds if seconds and result.wall_seconds else None,
        details=dict(result.details),
    )


def _keep_files(folder: Path, name: str, product: Product) -> dict[str, Any]:
    """Write the output files; return the corresponding fields of the item's line."""
    match product:
        case Speech():
            return {"audio": write_audio(folder, name, product.samples, product.rate), "turns": product.turns}
        case WrittenScript():
            write_json(folder / f"{name}.json", {"text": product.text, "turns": product.turns})
            return {"script": f"{name}.json"}
    answers = (
        GeneratedAnswer(
            turn=answer.turn,
            audio=write_audio(folder, f"{name}.{answer.turn}", answer.speech.samples, answer.speech.rate),
            seconds=answer.speech.duration,
            text=answer.text,
        )
        for answer in product.answers
    )
    return {"answers": tuple(answers)}


def _start_copies(file: Path, copies: int) -> int:
    """Run the same job in several processes, which share the work; return 3 if one died.

    Raises:
        BadInput: all copies refused the job; the message is the reason that one of them gave.
    """
    from torch.distributed.run import get_args_parser
    from torch.distributed.run import run as launch

    os.environ |= {_COPY: "1", "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo")}
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, len(os.sched_getaffinity(0)) // copies)))
    # Everything listens on free loopback ports, so the name of this machine is not needed.
    options = ["--nnodes=1", f"--nproc-per-node={copies}", "--max-restarts=0", "--local-addr=127.0.0.1"]
    options += ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", f"--rdzv-id={os.getpid()}"]
    try:
        options += ["--module", __spec__.name if __spec__ else __name__, str(file)]
        launch(get_args_parser().parse_args(options))  # type: ignore[no-untyped-call]
    except Exception as error:
        refused = Job.read(file).out_folder / REFUSED
        if refused.is_file():
            raise BadInput(str(json.loads(refused.read_bytes())["reason"])) from None
        print(f"a copy of the model's process died ({error}); run the job again to resume it", file=sys.stderr)
        return 3
    return 0


def _without_network() -> None:
    """Configure the libraries not to use the network; a sandbox also prevents this."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_PROGRESS_BARS"):
        os.environ[name] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _hardware(job: Job) -> str:
    """Describe the hardware that runs the model, because RTFs are compared only on the same hardware."""
    if job.adapter == "outputs":
        return ""
    import platform

    import torch

    device = choose_device(job.device)
    if device.startswith("cuda"):
        return f"1 × {torch.cuda.get_device_name(device)}"
    return f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}"


def _versions() -> dict[str, str]:
    from importlib import metadata

    return {
        name: metadata.version(name)
        for name in ("podeval", "torch", "transformers", "peft")
        if name == "podeval" or name in sys.modules
    }


if __name__ == "__main__":
    sys.exit(main())
