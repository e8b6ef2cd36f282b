"""Run the user's own system: any `OwnMaker`, in this process, without a queue, a document or a sandbox.

The system runs on the user's own machine, and is trusted by the person who runs it. Outputs are stored as in every
other run, so the same call resumes where the last one stopped.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput, PodevalError
from podeval.files import append_lines
from podeval.metrics.score import Cause
from podeval.runs.item_inputs import ask_of
from podeval.runs.latency import AT_ONCE, LEFT, read_latency
from podeval.runs.run import RunProgress, RunRequest, measure_run, read_items, tell_nobody
from podeval.runs.run_folder import Output, OutputAnswer, RunFolder, RunPlan, RunSummary
from podeval.systems.servers.connection import RequestRefused, ServerBusy, ServerRefused, ServerSystem
from podeval.systems.servers.streaming import RequestPace
from podeval.systems.speech import (
    Ask,
    OwnMaker,
    Product,
    Speech,
    SpeechFailed,
    SpokenAnswers,
    WrittenScript,
    list_speeches,
)
from podeval.text.script_format import read_any_script

FINGERPRINT = "sha256"
"""Key in an output's details for the files from which it was read."""


@dataclass(frozen=True)
class OwnSystem:
    """The user's own system.

    Attributes:
        maker: the object that makes its outputs.
        name: name of its folder and its row on the board.
        title: display name.
        supplied: whether its outputs were made elsewhere.
        say: function that receives a sentence about items left for a later run.
    """

    maker: OwnMaker[Product]
    name: str
    title: str
    supplied: bool = False
    say: Callable[[str], None] = field(default=lambda sentence: None)

    @property
    def pace(self) -> RequestPace:
        """The pace of requests to the system: one after the other, unless a server accepts several at once."""
        return self.maker.connection.pace if isinstance(self.maker, ServerSystem) else RequestPace(0)

    @property
    def generation(self) -> dict[str, Any]:
        """All settings that affect its outputs or their speed, as plain JSON data."""
        return {**self.maker.generation, **({AT_ONCE: self.pace.at_once} if self.pace.at_once > 1 else {})}


def run_own_system(system: OwnSystem, request: RunRequest, progress: RunProgress = tell_nobody) -> RunSummary:
    """Make missing outputs, compute missing results, and aggregate.

    Raises:
        BadInput: the folder contains a run with different settings, there is no such track, profile or seed, the folder
            of outputs contains no outputs of the benchmark, a file changed since it was measured, or a server refuses
            all requests.
        DiskFull: nothing more can be written; finished work is kept.
    """
    if not 0 <= request.seed < 2**31:
        raise BadInput(f"the seed {request.seed} is out of range; give a whole number from 0 to {2**31 - 1}")
    items = read_items(request).items
    try:
        system.maker.require_some([ask_of(request.track, item) for item in items], request.seed)
    except BadInput as refusal:
        command = f"podeval data items {request.benchmark.name} --split {request.split} --track {request.track}"
        raise BadInput(f"{refusal}; run `{command}` to see what the outputs must contain") from None

    def make(folder: RunFolder, items: tuple[Item, ...]) -> Iterable[Item]:
        return _make_missing(system, request, folder, items, lambda done: progress("making", done, len(items)))

    plan = RunPlan(
        benchmark=request.benchmark.name,
        split=request.split,
        dataset="",
        track=request.track,
        system=system.name,
        system_title=system.title,
        system_kind="model",
        generation=system.generation,
        seed=request.seed,
        provenance="outputs supplied" if system.supplied else "run by us",
    )
    return measure_run(plan, request, progress, make)


def _make_missing(
    system: OwnSystem, request: RunRequest, folder: RunFolder, items: tuple[Item, ...], done: Callable[[int], None]
) -> Iterator[Item]:
    """Generate each item's missing output, and pass on each item whose output exists.

    With several requests in flight, all outputs are generated before any is passed on, so that measuring does not slow
    them down.
    """

    def make(item: Item) -> ServerBusy | None:
        ask = ask_of(request.track, item)
        return None if _is_made(system.maker, folder, ask, request.seed) else _make_one(system, request, folder, item)

    left = 0
    attempts: Iterable[tuple[Item, ServerBusy | None]] = _make_in_turn(items, make, done)
    if system.pace.at_once > 1:
        attempts = _make_together(system, make, items, done)
    for item, busy in attempts:
        if busy is None:
            yield item
            continue
        left += 1
        append_lines(folder.path / LEFT, [{"item": item.id, "reason": str(busy)}])
        if left == 1:
            system.say(f"{system.title}: {item.id} is left for the next run: {busy}")
    done(len(items))
    if left > 1:
        system.say(f"{system.title}: {left} items are left for the next run; run the same command again")


def _make_in_turn(
    items: Sequence[Item], make: Callable[[Item], ServerBusy | None], done: Callable[[int], None]
) -> Iterator[tuple[Item, ServerBusy | None]]:
    """Generate one item after another, on demand."""
    for number, item in enumerate(items):
        done(number)
        yield item, make(item)


def _make_together(
    system: OwnSystem, make: Callable[[Item], ServerBusy | None], items: Sequence[Item], done: Callable[[int], None]
) -> list[tuple[Item, ServerBusy | None]]:
    """Generate all items, several at a time; return each with the reason if it was left for a later run.

    An error that stops the run lets requests in flight finish, and keeps their outputs.
    """
    with ThreadPoolExecutor(system.pace.at_once, "podeval-item") as pool:
        futures = {pool.submit(make, item): item for item in items}
        try:
            for number, future in enumerate(as_completed(futures), 1):
                future.result()
                done(number)
        except BaseException:
            system.say(f"{system.title}: waiting for the requests in flight; no further requests are sent")
            system.pace.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [(item, future.result()) for future, item in futures.items()]


def _make_one(system: OwnSystem, request: RunRequest, folder: RunFolder, item: Item) -> ServerBusy | None:
    """Generate an item's output and store it or the failure; return the reason if the item is left for a later run.

    Raises:
        ServerRefused: the server refuses all items.
        PodevalError: no item can be generated.
    """
    ask = ask_of(request.track, item)
    try:
        (product,) = system.maker.make([ask], request.seed)
        keep_product(folder, item, product, system.maker.fingerprint(ask, request.seed))
    except ServerBusy as busy:
        return busy
    except ServerRefused:
        raise
    except (SpeechFailed, BadInput) as failure:
        keep_failure(folder, item, str(failure))
    except RequestRefused as refusal:
        keep_failure(folder, item, str(refusal), "ours")
    except PodevalError:
        raise
    except Exception as error:
        # An unforeseen error affects only this item, and is not the system's fault.
        keep_failure(folder, item, f"{type(error).__name__}: {error}", "ours")
    return None


def _is_made(maker: OwnMaker[Product], folder: RunFolder, ask: Ask, seed: int) -> bool:
    """Return whether an item's output is final.

    Raises:
        BadInput: the file that the output was read from has changed since.
    """
    output = folder.output(ask.id)
    if output is None or output.failed_by == "ours":
        return False
    before, now = output.details.get(FINGERPRINT), maker.fingerprint(ask, seed)
    if before is not None and now is not None and before != now:
        raise BadInput(
            f"the file of {ask.id} has changed since it was measured; choose a new name for the new outputs with "
            f"--name, or "
            f"delete {folder.path} to start afresh"
        )
    return before is not None or now is None


def describe_streaming(folder: RunFolder) -> str | None:
    """Describe in a sentence how a server's stream would have played; return None if there are no timings."""
    latency = read_latency(folder)
    if latency is None:
        return None
    return (
        f"first audio after {latency.first_audio:.2f} s (median) and {latency.late_first_audio:.2f} s (95th "
        f"percentile), of {latency.answers} requests; longest underrun {latency.underrun:.2f} s, playback "
        f"continuous for {latency.continuous:.1%} of the time"
        + (f"; real-time factor {latency.rtf:.2f}" if latency.rtf is not None else "")
        + (f", {latency.at_once} requests at once, {latency.errors} errors" if latency.at_once > 1 else "")
        + (f"; cost {latency.cost:g} according to the server" if latency.cost is not None else "")
    )


def describe_turn_taking(folder: RunFolder) -> str | None:
    """Describe in a sentence how a system took turns in live conversations; return None if there are no timings."""
    outputs = [folder.output(item.id) for item in folder.items() or ()]
    logs = [output.details["turn_taking"] for output in outputs if output and "turn_taking" in output.details]
    if not logs:
        return None
    replies = [reply["reply_delay"] for log in logs for reply in log["replies"]]
    interruptions = [each for log in logs for each in log["interruptions"]]
    delays = [delay for delay in replies if delay is not None]
    stops = [each["stopping_time"] for each in interruptions if each["stopped"]]
    overlap = sum(log["overlap_share"] for log in logs) / len(logs)
    return (
        (f"replies after {np.median(delays):.2f} s (median of {len(delays)})" if delays else "no replies to time")
        + (f", stopped {len(stops)} of {len(interruptions)} times when interrupted" if interruptions else "")
        + (f", after {np.median(stops):.2f} s (median)" if stops else "")
        + f"; both sides speak at once in {overlap:.1%} of the time with speech"
    )


def list_notes(folder: RunFolder) -> list[str]:
    """List the notes about outputs: how a script was read, a rate that the server did not state, refused fields."""
    details = [output.details for item in folder.items() or () if (output := folder.output(item.id))]
    notes = [note for one in details for note in (*one.get("notes", ()), *one.get("script_notes", ()))]
    if cut := sum(one.get("whole") is False for one in details):
        notes.append(f"{cut} outputs were cut off at the model's length limit: their ends are missing")
    for one in details:
        for name, words in one.get("refused_fields", {}).items():
            notes.append(f"the server refuses {name!r}, which is replaced or left out ({words})")
    return list(dict.fromkeys(notes))


def keep_failure(folder: RunFolder, item: Item, reason: str, cause: Cause | None = None) -> None:
    """Record that an item has no output, with the reason, and the party at fault if it is not the system."""
    script = tuple(item.script.to_json()) if item.script is not None else ()
    folder.write_output(Output(item=item.id, failed=reason[:2_000], failed_by=cause, script=script))


def keep_product(folder: RunFolder, item: Item, product: Product, fingerprint: str | None = None) -> None:
    """Store a system's output for an item; samples that are not finite numbers count as a failure of the system.

    Raises:
        SpeechFailed: the samples are not finite numbers.
    """
    speeches = list_speeches(product)
    if any(not np.all(np.isfinite(speech.samples)) for speech in speeches):
        raise SpeechFailed("the system returned NaN or infinite samples")
    script = tuple(item.script.to_json()) if item.script is not None else ()
    output = Output(
        item=item.id,
        duration=sum(speech.duration for speech in speeches) if speeches else None,
        wall_seconds=product.wall_seconds or None,
        script=script,
        details={**product.details, **({FINGERPRINT: fingerprint} if fingerprint else {})},
    )
    match product:
        case Speech():
            update = {"turns": product.turns, "load_seconds": product.load_seconds}
            folder.write_output(output.model_copy(update=update), product.samples, product.rate)
        case WrittenScript():
            written = read_any_script(product.text if product.turns is None else product.turns)
            details = {**output.details, "script_notes": list(written.notes)} if written.notes else output.details
            folder.write_output(output.model_copy(update={"script": tuple(written.to_json()), "details": details}))
        case SpokenAnswers():
            by_turn = {answer.turn: answer for answer in product.answers}
            answers = []
            for turn in item.user:
                answer = by_turn[turn.id]
                name = folder.write_audio(f"{item.id}.{turn.id}", answer.speech.samples, answer.speech.rate)
                answers.append(OutputAnswer(audio=name, words=answer.text or ""))
            output = output.model_copy(update={"answers": tuple(answers)})
            live = product.conversation
            folder.write_output(output, *((live.samples, live.rate) if live else ()))
