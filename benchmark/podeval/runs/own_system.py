"""Run a system of the user's own: any `OutputMaker`, in this process, without a queue, a document or a sandbox.

It is for one's own machine: whoever runs it trusts it. What was made is kept as for every other run, so that the same
call again goes on where the last one stopped.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput, PodevalError
from podeval.metrics.score import Cause
from podeval.runs.item_inputs import ask_of
from podeval.runs.run import QUIET, RunProgress, RunRequest, measure_run, read_items
from podeval.runs.run_folder import Output, OutputAnswer, RunFolder, RunPlan, RunSummary
from podeval.systems.servers.connection import RequestRefused, ServerBusy, ServerRefused
from podeval.systems.speech import (
    Ask,
    OutputMaker,
    Product,
    Speech,
    SpeechFailed,
    SpokenAnswers,
    WrittenScript,
    list_speeches,
)
from podeval.text.script_format import read_any_script

FINGERPRINT = "sha256"
"""Key in an output's details: of the files that it was read from."""


class OwnMaker(OutputMaker, Protocol):
    """An `OutputMaker` that can say what it is."""

    @property
    def generation(self) -> dict[str, Any]:
        """Everything that changes what it makes, as plain JSON data."""


@dataclass(frozen=True)
class OwnSystem:
    """A system of the user's own.

    Attributes:
        maker: makes its outputs.
        name: of its folder and its row.
        title: as people call it.
        supplied: whether its outputs were made elsewhere.
        say: is told, in a sentence, of what is left for a later run.
    """

    maker: OwnMaker
    name: str
    title: str
    supplied: bool = False
    say: Callable[[str], None] = field(default=lambda sentence: None)


def run_own_system(system: OwnSystem, request: RunRequest, progress: RunProgress = QUIET) -> RunSummary:
    """Make what is missing, measure what is missing, aggregate.

    Raises:
        BadInput: the folder holds a run made otherwise, there is no such track, profile or seed, the folder of outputs
            holds nothing of the benchmark, a file changed since it was measured, or a server takes no request.
        DiskFull: nothing more can be written; what is finished is kept.
    """
    if not 0 <= request.seed < 2**31:
        raise BadInput(f"the seed {request.seed} is out of range; give a whole number from 0 to {2**31 - 1}")
    items = read_items(request).items
    if (require_some := getattr(system.maker, "require_some", None)) is not None:
        try:
            require_some([ask_of(request.track, item) for item in items], request.seed)
        except BadInput as refusal:
            command = f"podeval data items {request.benchmark.name} --split {request.split} --track {request.track}"
            raise BadInput(f"{refusal}; `{command}` prints what is to be in them") from None
    step = partial(progress.step, "make", total=len(items))

    def make(folder: RunFolder, items: tuple[Item, ...]) -> Iterable[Item]:
        return _make_missing(system, request, folder, items, step)

    plan = RunPlan(
        benchmark=request.benchmark.name,
        split=request.split,
        dataset="",
        track=request.track,
        system=system.name,
        system_title=system.title,
        system_kind="model",
        generation=system.maker.generation,
        seed=request.seed,
        provenance="outputs supplied" if system.supplied else "run by us",
    )
    return measure_run(plan, request, progress, make)


def _make_missing(
    system: OwnSystem, request: RunRequest, folder: RunFolder, items: tuple[Item, ...], done: Callable[[int], None]
) -> Iterator[Item]:
    """Make each item's output that is not in the folder, and hand on each item whose output is there."""
    left = 0
    for number, item in enumerate(items):
        done(number)
        ask = ask_of(request.track, item)
        if _is_made(system.maker, folder, ask, request.seed):
            yield item
            continue
        try:
            (product,) = system.maker.make([ask], request.seed)
            keep_product(folder, item, product, _fingerprint(system.maker, ask, request.seed))
        except ServerBusy as busy:
            left += 1
            if left == 1:
                system.say(f"{system.title}: {item.id} is left for the next run: {busy}")
            continue
        except ServerRefused:
            raise
        except (SpeechFailed, BadInput) as failure:
            keep_failure(folder, item, str(failure))
        except RequestRefused as refusal:
            keep_failure(folder, item, str(refusal), "ours")
        except PodevalError:
            raise
        except Exception as error:
            # What nobody thought of costs this item alone, and is no fault of the system.
            keep_failure(folder, item, f"{type(error).__name__}: {error}", "ours")
        yield item
    done(len(items))
    if left > 1:
        system.say(f"{system.title}: {left} items are left for the next run; give the same command again")


def _is_made(maker: OutputMaker, folder: RunFolder, ask: Ask, seed: int) -> bool:
    """Tell whether an item's output stands.

    Raises:
        BadInput: the file it was read from has changed since.
    """
    output = folder.output(ask.id)
    if output is None or output.failed_by == "ours":
        return False
    if not hasattr(maker, "fingerprint"):
        return True
    before, now = output.details.get(FINGERPRINT), _fingerprint(maker, ask, seed)
    if before is not None and now is not None and before != now:
        raise BadInput(
            f"the file of {ask.id} has changed since it was measured; choose another --name for the new outputs, or "
            f"delete {folder.path} to start afresh"
        )
    return before is not None or now is None


def _fingerprint(maker: OutputMaker, ask: Ask, seed: int) -> str | None:
    compute = getattr(maker, "fingerprint", None)
    return compute(ask, seed) if compute is not None else None


def describe_streaming(folder: RunFolder) -> str | None:
    """Say in a sentence how what a server sent would have played; None where nothing was timed."""
    outputs = [folder.output(item.id) for item in folder.items() or ()]
    logs = [output.details["playback"] for output in outputs if output and "playback" in output.details]
    if not logs:
        return None
    first = [piece["time_to_first_audio"] for log in logs for piece in log["pieces"]]
    costs = [output.details["cost"] for output in outputs if output and "cost" in output.details]
    underrun = max(log["underrun"] for log in logs)
    share = sum(log["continuous_playback"] for log in logs) / len(logs)
    return (
        f"first audio after {np.percentile(first, 50):.2f} s (median) and {np.percentile(first, 95):.2f} s (95th "
        f"percentile), of {len(first)} requests; longest underrun {underrun:.2f} s, playback "
        f"continuous for {share:.1%} of the time" + (f"; cost {sum(costs):g} as the server says" if costs else "")
    )


def list_notes(folder: RunFolder) -> list[str]:
    """List what outputs are noted for: how a script was read, a rate that a server states nowhere, refused fields."""
    details = [output.details for item in folder.items() or () if (output := folder.output(item.id))]
    notes = [note for one in details for note in (*one.get("notes", ()), *one.get("script_notes", ()))]
    for one in details:
        for name, words in one.get("refused_fields", {}).items():
            notes.append(f"the server refuses {name!r}, which is replaced or left out ({words})")
    return list(dict.fromkeys(notes))


def keep_failure(folder: RunFolder, item: Item, reason: str, cause: Cause | None = None) -> None:
    """Keep that nothing was made of an item, why, and by whose fault if it is not the system's."""
    script = tuple(item.script.to_json()) if item.script is not None else ()
    folder.write_output(Output(item=item.id, failed=reason[:2_000], failed_by=cause, script=script))


def keep_product(folder: RunFolder, item: Item, product: Product, fingerprint: str | None = None) -> None:
    """Keep what a system made of an item; samples that are no numbers are its failure.

    Raises:
        SpeechFailed: they are.
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
            folder.write_output(output.model_copy(update={"answers": tuple(answers)}))
