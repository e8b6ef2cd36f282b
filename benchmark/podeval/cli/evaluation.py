"""The shared part of `podeval run` and `podeval demo`: run a system, show progress, and report unscored items."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from podeval.cli import judge_limits
from podeval.cli.output import Steps, say
from podeval.errors import BadInput
from podeval.files import locate_hub_source
from podeval.systems.servers import SERVERS, find_server
from podeval.systems.servers.kinds import KINDS, recognise_kind
from podeval.text.terminal_safe import make_printable

if TYPE_CHECKING:
    from podeval.runs.own_system import OwnSystem
    from podeval.runs.run import RunProgress, RunRequest
    from podeval.runs.run_folder import RunSummary
    from podeval.systems.speech import OwnMaker, Product, SpeakingSystem


def load_system(name: str) -> tuple["SpeakingSystem", str]:
    """Return a system that can be run on this machine, and its title.

    Raises:
        BadInput: the system does not exist, or does not come with podeval.
    """
    from podeval.systems import registry
    from podeval.systems.submission import BuiltIn
    from podeval.systems.submission_reading import load

    path = locate_hub_source("submissions") / name if name in registry.NAMES else Path(name)
    if not path.exists() and path.suffix not in (".yaml", ".yml"):
        registry.get(name)
    submission = load(path)
    if not isinstance(submission.source, BuiltIn):
        kind = submission.source.kind
        what = (
            "contains a paper's figures, so there is nothing to run"
            if kind == "reported"
            else f"is of kind {kind}: queue it with `podeval submit {path}`, then `podeval worker --once` processes it"
        )
        raise BadInput(
            f"`podeval run` runs systems that come with podeval ({', '.join(registry.NAMES)}); {path} {what}"
        )
    return registry.get(submission.source.runner), submission.system.name


def evaluate(name: str, request: "RunRequest", seeds: int = 1, *, which: str = "", board: bool = False) -> bool:
    """Run one system; return whether every item was scored, and print the reasons for unscored items.

    Args:
        name: the name of a system that comes with podeval, or the path of its submission.
        request: the request to run.
        seeds: number of seeds, counted from the request's seed.
        which: the number of this run among several, for the progress display.
        board: whether to write the board's tables immediately after measuring.

    Raises:
        ModelMissing: the system cannot speak on this machine; the message gives the remedy.
    """
    from podeval.runs.run import run_system

    system, title = load_system(name)
    return _repeat(title, request, seeds, partial(run_system, system, title), which=which, board=board)


def evaluate_own(system: "OwnSystem", request: "RunRequest", seeds: int, *, which: str = "") -> bool:
    """Run the user's own system; return whether every item was scored, and print the reasons for unscored items."""
    from podeval.runs.own_system import describe_streaming, describe_turn_taking, list_notes, run_own_system
    from podeval.runs.run_folder import RunFolder
    from podeval.systems.servers.server_errors import fixes_seed

    if seeds > 1 and fixes_seed(system.generation.get("extra", {})):
        raise BadInput(
            "--field gives every request the same seed, so --seeds would only repeat outputs; leave out one of them"
        )
    complete = _repeat(system.title, request, seeds, partial(run_own_system, system), which=which, board=True)
    run = RunFolder(request.runs, request.benchmark.name, request.split, system.name)
    for sentence in filter(None, (describe_streaming(run), describe_turn_taking(run))):
        say(f"{system.title}: {sentence}")
    for note in list_notes(run)[:8]:
        say(f"{system.title}: {note}")
    return complete


def _repeat(
    title: str,
    request: "RunRequest",
    seeds: int,
    run: "Callable[[RunRequest, RunProgress], RunSummary]",
    *,
    which: str = "",
    board: bool = False,
) -> bool:
    """Run a system with each seed, and report unscored items; return True if there are none."""
    from podeval.runs.aggregate import NOT_MEASURED
    from podeval.runs.reliability import write_reliability
    from podeval.runs.settings import list_missing_models

    # Check before the first item is spoken, because otherwise a missing model would be reported only hours later.
    for sentence in list_missing_models(request.benchmark, request.track, request.split, request.profile):
        say(f"{title}: {sentence}")
    complete = True
    summaries: list[RunSummary] = []
    for number in range(seeds):
        name = f"{title}, seed {request.seed + number}" if seeds > 1 else title
        with Steps(f"{which}{name}") as steps:
            more = request.repeats or number > 0
            summary = run(replace(request, seed=request.seed + number, repeats=more), steps.step)
            summaries.append(summary)
            if number == seeds - 1:
                if seeds > 1:
                    write_reliability(request, summary.plan.system)
                if board:
                    from podeval.board.build import build

                    build(request.runs)
        part = request.limit is not None or request.pilot
        complete = tell_unscored(name, summary, NOT_MEASURED.reason if part else "") and complete
    judge_limits.tell_usage(request.bench)
    if request.pilot:
        judge_limits.tell_pilot_run(summaries)
    return complete


def tell_unscored(title: str, summary: "RunSummary", left: str = "") -> bool:
    """Print why items are unscored, naming each kind of cause once with its metrics; return True if all items are
    scored.

    Args:
        title: name of the run.
        summary: the measurements of the run.
        left: the reason why items are left for a later run; this is not considered an error.
    """
    from podeval.metrics import catalogue
    from podeval.texts import find_kinds

    whole = [row for row in summary.metrics if not row.slice]
    if count := max((row.reasons.get(left, 0) for row in whole), default=0):
        say(f"{title}: {count} {'item is' if count == 1 else 'items are'} left for a later run")
    kinds = find_kinds(reason for row in whole for reason in row.reasons)
    metrics: dict[tuple[str, int, int], list[str]] = {}
    for row in whole:
        total = row.scored + row.unscored_system + row.unscored_ours
        for kind in dict.fromkeys(kinds[reason] for reason in row.reasons if reason != left):
            count = sum(count for reason, count in row.reasons.items() if kinds[reason] == kind)
            metrics.setdefault((kind, count, total), []).append(row.metric)
    every = len({row.metric for row in whole})
    for (kind, count, total), names in metrics.items():
        distinct = list(dict.fromkeys(names))
        of_what = "every metric" if len(distinct) == every > 1 else ", ".join(distinct)
        example = "for example, " if list(kinds.values()).count(kind) > 1 else ""
        say(f"{title}: {of_what} unscored on {count} of {total} items: {example}{kind}")
    if any(row.unscored_system and not catalogue.get(row.metric).only_for for row in whole):
        say(
            f"{title}: items on which the system failed are not repeated; to generate and measure them again, add "
            f"--retry failed"
        )
    return not metrics


# Options that select the user's own system for `podeval run`.

Name = Annotated[
    str,
    typer.Option(
        "--name", help="name of the run's folder and of its row; by default the name of the folder, file or model"
    ),
]
OutputsFolder = Annotated[
    Path | None,
    typer.Option("--outputs", help="folder with your system's outputs: one file per item, or a manifest.jsonl"),
]
PythonFunction = Annotated[str, typer.Option("--python", help="FILE.py:FUNCTION that speaks, writes or answers")]
Server = Annotated[
    str, typer.Option("--server", help="base URL of an OpenAI-compatible server, such as http://host/v1")
]
Api = Annotated[
    str, typer.Option("--api", help=f"API of the server: {' or '.join(SERVERS)}; chosen by the track by default")
]
ServedModel = Annotated[str, typer.Option("--model", help="the model's name on the server")]
Voices = Annotated[
    list[str] | None,
    typer.Option("--voice", help="a voice of the server, given once for each speaker in order, or as SPEAKER=VOICE"),
]
ServerKindName = Annotated[
    str,
    typer.Option(
        "--server-kind",
        help=f"kind of the server: {', '.join(KINDS)}; by default recognised by how the server describes itself",
    ),
]
Clone = Annotated[
    bool, typer.Option("--clone", help="send each speaker's reference voice with its transcript to the server")
]
Dialogue = Annotated[
    Literal["whole", "turns"] | None,
    typer.Option(help="send scripts whole or turn by turn; by default whole for models that are known to support this"),
]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--field", help="KEY=JSON to set in every request to the server; null leaves the field out (repeatable)"
    ),
]
Stream = Annotated[bool, typer.Option("--stream", help="ask the server for a stream, and measure how it would play")]
Pace = Annotated[
    float,
    typer.Option(
        "--pace",
        min=1,
        max=50,
        help="speed of a live conversation as a multiple of real time; delays are measured only at 1",
    ),
]
InterruptAfter = Annotated[
    float,
    typer.Option("--interrupt-after", min=0, help="seconds of a live answer after which the next turn interrupts it"),
]
PerMinute = Annotated[
    float,
    typer.Option(
        "--requests-per-minute", min=0, help="maximum number of requests to the server per minute; 0: no limit"
    ),
]
AtOnce = Annotated[
    int, typer.Option("--at-once", min=1, max=64, help="maximum number of simultaneous requests to the server")
]
Timeout = Annotated[float, typer.Option("--timeout", min=0.1, help="seconds to wait for the server before giving up")]

_MOST_LETTERS = 48
_WAYS = ("outputs", "python", "server")


def require_system(context: typer.Context, system: str) -> str:
    """Refuse a command that does not name a system, with the same kind of message as for a missing argument."""
    if not system and not context.resilient_parsing and not any(context.params.get(way) for way in _WAYS):
        raise typer.BadParameter("name a system, or give one of --outputs, --python and --server")
    return system


@dataclass(frozen=True, kw_only=True)
class OwnOptions:
    """The options of `podeval run` for the user's own system."""

    outputs: Path | None = None
    python: str = ""
    server: str = ""
    model: str = ""
    api: str = ""
    voice: tuple[str, ...] = ()
    stream: bool = False
    server_kind: str = ""
    clone: bool = False
    dialogue: str = ""
    field: tuple[str, ...] = ()
    pace: float = 1.0
    interrupt_after: float = 0.0
    per_minute: float = 0.0
    at_once: int = 1
    timeout: float = 120.0
    preset: str = ""

    def require_one(self, system: str) -> None:
        """Refuse to combine the four ways of naming a system, or to use options that belong to another way.

        Raises:
            BadInput: the options do not fit together; the message lists the ways.
        """
        ways = {"SYSTEM": system, "--outputs": self.outputs, "--python": self.python, "--server": self.server}
        chosen = [way for way, value in ways.items() if value]
        if len(chosen) > 1:
            raise BadInput(f"{' and '.join(chosen)} specify several systems; give only one of {', '.join(ways)}")
        if self.model and not self.server:
            raise BadInput("--model names a model on a server; give --server too")
        if (self.api or self.of_server or self.at_once > 1) and not self.server:
            foreign = ["api"] * bool(self.api) + [*self.of_server] + ["at_once"] * (self.at_once > 1)
            raise BadInput(f"{', '.join(map(_to_option, foreign))} can only be used with --server")

    @property
    def of_server(self) -> dict[str, Any]:
        """Return the given options that a class of `podeval.systems.servers` may take, by name."""
        names = ("voice", "stream", "server_kind", "clone", "dialogue", "field", "interrupt_after")
        options = {name: getattr(self, name) for name in names} | {"pace": self.pace if self.pace != 1 else 0}
        return {name: value for name, value in options.items() if value}


def open_own_system(options: OwnOptions, name: str, track: str) -> "OwnSystem":
    """Open the system that the options name.

    Raises:
        BadInput: the system does not exist or cannot be opened, or its name is taken or invalid.
    """
    from podeval.runs.own_system import OwnSystem

    maker, stem = _open(options, track)
    chosen = require_name(name or _to_name(stem))
    title = name or stem
    return OwnSystem(maker, chosen, title, supplied=options.outputs is not None, say=say)


def require_name(name: str) -> str:
    """Return a name after checking that the user's own system can have it.

    Raises:
        BadInput: the name contains characters that are not allowed, or belongs to a system that comes with podeval.
    """
    from podeval.systems.submission import PATTERNS_IN_WORDS, SLUG

    if not re.fullmatch(SLUG, name):
        raise BadInput(f"the name {name!r} cannot be used; --name takes {PATTERNS_IN_WORDS[SLUG]}")
    if (locate_hub_source("submissions") / name).is_dir():
        raise BadInput(f"{name} is the name of a system that comes with podeval; choose another name with --name")
    return name


def _open(options: OwnOptions, track: str) -> tuple["OwnMaker[Product]", str]:
    """Open the source of the outputs; return it with its name."""
    if options.outputs is not None:
        from podeval.systems.adapters.outputs import OwnOutputs

        return OwnOutputs(options.outputs), make_printable(options.outputs.resolve().name)
    if options.python:
        from podeval.systems.python_file import open_python

        return open_python(options.python), Path(options.python.rpartition(":")[0]).stem
    load = f" at {options.at_once}" if options.at_once > 1 else ""
    return _open_server(options, track), options.model.rpartition("/")[2] + load


def _open_server(options: OwnOptions, track: str) -> "OwnMaker[Product]":
    from podeval.systems.servers.connection import ServerConnection
    from podeval.systems.servers.speech_endpoint import SpeechEndpoint
    from podeval.systems.servers.streaming import RequestPace

    if track == "podcast":
        raise BadInput(
            "podeval cannot request whole podcasts from servers; provide a folder of podcasts with "
            "--outputs, or use --python"
        )
    apis = {"voice": ("speech",), "respond": ("chat", "realtime")}.get(track, ("chat",))
    api = options.api or apis[0]
    server = find_server(api)
    if foreign := [_to_option(name) for name in options.of_server if name not in server.options]:
        raise BadInput(f"{', '.join(foreign)} cannot be used with the API {api} on the track {track}; leave it out")
    if api not in apis:
        raise BadInput(f"the API {api} does not support the track {track}; use --api {' or '.join(apis)}")
    if not options.model:
        raise BadInput(f"name the model on {options.server} with --model")
    options = _add_sampling(options, api)
    connection = ServerConnection(
        options.server, timeout=options.timeout, pace=RequestPace(options.per_minute, at_once=options.at_once)
    )
    connection.require()
    kind, reason = options.server_kind, "--server-kind says so"
    if api == "speech" and not kind:
        kind, reason = recognise_kind(connection)
    of_server = {**options.of_server, **({"server_kind": kind} if kind else {})}
    system = server.open(connection, options.model, **of_server)
    if isinstance(system, SpeechEndpoint):
        say(f"{options.server} is treated as {kind} ({reason}; --server-kind chooses another kind); {system.way}")
    return system


def _add_sampling(options: OwnOptions, api: str) -> OwnOptions:
    """Return the options with the sampling settings of the preset's paper as fields; the user's own fields take
    precedence.
    """
    from podeval.benchmarks.presets import get_preset

    sampling = get_preset(options.preset).sampling if options.preset else {}
    if api != "chat" and sampling:
        say(
            f"the preset {options.preset} sets {', '.join(sampling)} for systems with a chat API; "
            f"the API {api} does not accept these"
        )
        return options
    set_by_user = {assignment.partition("=")[0] for assignment in options.field}
    fields = [f"{name}={json.dumps(value)}" for name, value in sampling.items() if name not in set_by_user]
    return replace(options, field=(*options.field, *fields))


def _to_option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _to_name(text: str) -> str:
    """Make a system name from the name of a folder, file or model."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:_MOST_LETTERS]
    return name if name[:1].isalpha() else f"own_{name}".rstrip("_")
