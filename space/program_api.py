"""The interface for programs that use Gradio's client: named endpoints at the root, with types and descriptions.

Every other event of the app is private. An endpoint's input is checked and limited like a route's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr
from gradio_addresses import get_uploaded_path
from gradio_events import describe_invalid
from measure_apart import MeasuringTurn, open_decoded, score_apart, score_script_apart
from pages.api import to_records
from pages.mcp import SubmissionCheck, build_arena_document
from pydantic import ConfigDict, ValidationError, validate_call
from tabs.score import check_names, list_offered
from website import Site

from podeval.board.exports.downloads import make_tidy
from podeval.board.view import BoardView, resolve_view
from podeval.errors import BadInput, PodevalError
from podeval.metrics import catalogue
from podeval.metrics.description import describe_metric
from podeval.submissions.public_view import list_public_rows
from podeval.texts import write_sentence

RATE = "60/minute"
MOST_ROWS = 5_000
QUICK = ("loudness", "dnsmos")
"""Metrics that measure a recording if a program does not name any."""


class ProgramApi:
    """The functions for programs.

    Args:
        site: the site that the endpoints read.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._checks = SubmissionCheck(site)

    def add(self, measuring: bool) -> None:
        """Add the endpoints to the app that is being built; `/score` is added only if visitors may measure."""
        for function in (self.leaderboard, self.metrics, self.submit_check, self.queue, self.ratings):
            _add(function, queue=False)
        if measuring:
            _add(self.score, queue=True, concurrency_limit=1, concurrency_id="measuring")

    def _limit(self, request: gr.Request, rate: str, what: str) -> None:
        self._site.limit(request.request, rate, what)

    def leaderboard(
        self,
        request: gr.Request,
        board: str = "",
        profile: str = "",
        slice: str = "",
        metric: str = "",
    ) -> list[dict[str, Any]]:
        """The numbers of one benchmark under one profile, one per row, best first.

        A row has system, system_title, metric, key, value, low and high (the 95 % interval), rank_best and rank_worst
        (null if it is not ranked, as for controls), better (higher or lower), scored and unscored counts, protocol.
        Compare only values of one metric, key and protocol.

        Args:
            request: the program's request.
            board: benchmark/split such as lfs_bench/mono, or a benchmark; empty for the first.
            profile: embedded, reference or paper; empty for the first that has numbers.
            slice: a part of the items such as language=en or category=Arts; empty for all items.
            metric: name of a metric such as wer, which /metrics lists; empty for all.
        """
        self._limit(request, RATE, "api leaderboard")
        index = self._site.results.index()
        if index.empty:
            return []
        wish = BoardView(board=board[:200], profile=profile[:40], dimension="all", slice=slice[:200])
        settled = resolve_view(wish, index)
        if missed := settled.missed_wishes(wish):
            name, value = next(iter(missed.items()))
            raise BadInput(
                write_sentence(
                    "no-such-value", what=name, value=f"{value[:80]!r}", choices=", ".join(_choices(settled, name))
                )
            )
        if metric and metric not in {column.metric for column in settled.columns}:
            measured = sorted({column.metric for column in settled.columns})
            raise BadInput(
                write_sentence("no-such-metric-here", metric=f"{metric[:80]!r}", choices=", ".join(measured))
            )
        frame = make_tidy(settled)
        frame = (frame[frame["metric"] == metric] if metric else frame).head(MOST_ROWS)
        better = {(each.name, key.name): key.better for each in catalogue.load_all_metrics() for key in each.keys}
        entries = [{**row, "better": better.get((row["metric"], row["key"]), "")} for row in to_records(frame)]
        return sorted(entries, key=_by_rank)

    def metrics(self, request: gr.Request) -> list[dict[str, Any]]:
        """Every metric: name, title, purpose, version, dimension, inputs, keys with direction and unit."""
        self._limit(request, RATE, "api metrics")
        return [describe_metric(metric) for metric in catalogue.load_all_metrics()]

    def score(
        self,
        request: gr.Request,
        recording_file: gr.FileData | None = None,
        text: str = "",
        metrics: list[str] | None = None,
    ) -> dict[str, Any]:
        """Measure a recording, or a script if no recording is given, with metrics that this machine has.

        Returns the value of each key by metric, or `unscored` with the reason, and the protocol of each metric.

        Args:
            request: the request of the program.
            recording_file: a recording of at most five minutes and 20 MB, as an uploaded file.
            text: the words that should be spoken; for a script, its lines as `Name: words`.
            metrics: names of metrics; empty for loudness and dnsmos of a recording, or all metrics that read a script.
        """
        part = "script" if recording_file is None else "recording"
        quick = list(QUICK) if recording_file else [metric.name for metric in list_offered("script")]
        names = check_names(metrics or quick, part)
        self._site.limit_measuring(request.request)
        if recording_file is None:
            with MeasuringTurn(part) as turn:
                turn.wait_to_the_end()
                lines = score_script_apart(text, names)
            return {line["metric"]: {**line["result"], "protocol": line["protocol"]} for line in lines}
        path = get_uploaded_path({"path": recording_file.path})
        try:
            with MeasuringTurn(part) as turn:
                turn.wait_to_the_end()
                with open_decoded(path) as copy:
                    *_, session = score_apart(copy, path.name, text, 0, names)
        finally:
            self._site.files.release(str(path))
        if session.problem:
            raise BadInput(session.problem)
        reasons = {name: why for line in session.lines for name, why in line.get("left_out", {}).items()}
        measured = [line for line in session.lines if "metric" in line]
        results = {line["metric"]: {**line["result"], "protocol": line["protocol"]} for line in measured}
        return {name: results.get(name) or {"unscored": reasons.get(name, ""), "cause": "system"} for name in names}

    def submit_check(
        self,
        request: gr.Request,
        repo: str = "",
        benchmark: str = "real_pod",
        track: str = "",
        task: str = "",
        document: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Check a model repo on the Hub as submitting it would, but queue nothing.

        Returns `passed`, `refusals` (each broken rule, what it requires, what was found), `preview` (what would run,
        and for how long), and `document`, the submission as it was read: change it and pass it in place of a repo.
        Models are checked for everyone, outputs only for people who are signed in.

        Args:
            request: the request of the program.
            repo: owner/name on the Hub.
            benchmark: name of a benchmark, such as real_pod or lfs_bench.
            track: the track of the benchmark; empty for its first.
            task: text-to-speech, podcast, script-writer or speech-to-speech; empty for the task on the repo's card.
            document: a whole submission document, in place of a repo.
        """
        arguments = {"repo": repo, "benchmark": benchmark, "track": track, "task": task}
        return self._checks.check(request.request, document, **arguments)

    def queue(self, request: gr.Request, state: str = "") -> list[dict[str, Any]]:
        """Submissions, newest first: system, who, what, state, place in the queue, seconds left, reason for stopping.

        Args:
            request: the request of the program.
            state: received, checked, queued, running, measured, published, refused, failed, cancelled or withdrawn;
                empty for all.
        """
        self._limit(request, RATE, "api queue")
        queue = self._site.services.desk.queue
        return list_public_rows(queue, queue.all(states=(state,) if state else ())[:500])

    def ratings(self, request: gr.Request, dimension: str = "") -> dict[str, Any]:
        """Ratings by public votes (`excerpts`, or `whole` if heard to the end) and by judges, never pooled, by
        dimension: the systems with rating, 95 % interval, rank range, battles, wins.

        Args:
            request: the request of the program.
            dimension: a single dimension; empty for all, and `pooled`.
        """
        self._limit(request, RATE, "api ratings")
        return build_arena_document(self._site, dimension)


def _add(function: Callable[..., Any], **options: Any) -> None:
    """Add an endpoint under the name of its function; programs get its refusals as sentences."""
    checked = validate_call(config=ConfigDict(arbitrary_types_allowed=True, strict=True))(function)
    gr.api(_say_refusals()(checked), api_name=function.__name__, api_description=function.__doc__, **options)


@contextmanager
def _say_refusals() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise gr.Error(describe_invalid(error), print_exception=False) from None
    except PodevalError as error:
        raise gr.Error(str(error), print_exception=False) from None


def _choices(settled: Any, name: str) -> list[str]:
    """Return the possible values of a field of the view."""
    boards = [value for _, value in settled.choices.boards]
    values = {"board": boards, "profile": settled.choices.profiles, "slice": settled.board.slices}[name]
    return [value or "all items" for value in values][:20]


def _by_rank(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return a sort key that groups rows by metric, ranked rows before others, best first."""
    value = row["value"]
    signed = 0.0 if value is None else value if row["better"] == "lower" else -value
    unranked = row["rank_best"] is None
    return (row["metric"], row["key"], row["protocol"], unranked, row["rank_best"] or 0, value is None, signed)
