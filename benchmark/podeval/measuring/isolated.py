"""Score one recording or script in a separate program, which can be limited in memory and time, and stopped at any
time.

`python -m podeval.measuring.isolated JOB.json` appends a line to `scored.jsonl` for each metric as soon as its result
is available, along with lines about the progress; at the end, it writes `report.html`. Facts about the recording are
stored in `PODEVAL_CACHE`. `run_job` starts the program in a sandbox and reads the lines.
"""

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import BaseModel

from podeval import progress, sandbox
from podeval.errors import PodevalError
from podeval.measuring.compute import compute
from podeval.measuring.engine import score_source
from podeval.measuring.inputs import MetricInputs, MetricPlan, plan_metrics, read_request
from podeval.measuring.recording_results import RecordingFacts, RecordingResults
from podeval.measuring.verdict import ReportWords
from podeval.metrics import catalogue
from podeval.metrics.description import VISITOR_INPUTS
from podeval.metrics.score import Defect, Result, format_clock, parse_result
from podeval.metrics.standing import translate
from podeval.models import weights
from podeval.recording.recording import read_source
from podeval.texts import write_sentence

LINES, REPORT = "scored.jsonl", "report.html"

_PAUSE = 0.5
"""Minimum time, in seconds, between two lines about the progress of a step."""
_SOON = 2.0
"""Time, in seconds, from the beginning of a step until its remaining time is first estimated."""
_MOST_LINES = 32 * 2**20
HEARTBEAT = 1.0
"""Seconds after which the same state is reported again, because a caller that reads the reports can stop only between
two of them."""

SETTING = "NUMBA_CACHE_DIR"
COMPILING_SECONDS = 300.0
OF_PITCH = ("pace", "prosodic_coherence", "dialogue_naturalness")
"""Names of metrics that track pitch."""
_PROGRAM = (
    "import numpy as np; from podeval.audio.prosody import RATE, measure_prosody; "
    "measure_prosody(np.sin(np.arange(RATE) / 20).astype(np.float32))"
)
_LOG = logging.getLogger(__name__)


class ScoreJob(BaseModel):
    """A job for the program.

    Attributes:
        recording: the file; None if the text is a script to score.
        name: name of the recording in the report.
        text: the spoken words; empty if unknown.
        speakers: number of speakers; 0 if unknown.
        metrics: names of the requested metrics; metrics that lack inputs are left out, with the reason.
        out: folder for its output.
        language: language of the report.
        allow_upsampling: whether a recording below a model's sampling rate is scored anyway.
    """

    recording: Path | None
    name: str
    text: str
    speakers: int
    metrics: Sequence[str]
    out: Path
    language: str = "en"
    allow_upsampling: bool = False


@dataclass
class ScoreSession:
    """The messages from the scoring process so far.

    Attributes:
        lines: the lines that the process wrote.
        at: the completed share of the work, from 0 to 1.
        what: a sentence about the current step, in the language of the report.
        problem: the reason why the process ended early; empty if it did not.
        report: the complete report, once it exists.
    """

    lines: list[dict[str, Any]] = field(default_factory=list)
    at: float = 0.0
    what: str = ""
    problem: str = ""
    report: bytes = b""


def read_results(lines: Sequence[Mapping[str, Any]], name: str) -> RecordingResults | None:
    """Return the scores in the lines so far; None before the first score.

    Args:
        lines: the lines that the program wrote.
        name: the name of the recording.
    """
    results: dict[str, Result] = {}
    protocols: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    facts, defects = RecordingFacts(), []
    for line in lines:
        left_out |= line.get("left_out", {})
        if "metric" in line:
            results[line["metric"]] = parse_result(line["result"])
            protocols[line["metric"]] = line["protocol"]
            facts = RecordingFacts.parse(line["facts"])
            defects += [Defect(**defect) for defect in line["defects"]]
    if not results and not left_out:
        return None
    in_order = tuple(sorted(set(defects), key=lambda one: (one.start, one.end)))
    return RecordingResults(name, results, left_out, defects=in_order, protocols=protocols, facts=facts)


def score_job(job: ScoreJob, tell: Callable[[Mapping[str, Any]], None]) -> None:
    """Score a recording metric by metric, report each result, and write the report.

    Args:
        job: the recording or script to score, with its settings.
        tell: function that receives the content of each line.

    Raises:
        BadInput: the recording or the words cannot be read.
    """
    if job.recording is None:
        _score_script(job, tell)
        return
    # A line break ensures that a text is not treated as the name of a file.
    spoken = f"{job.text}\n" if job.text.strip() else None
    request = read_request(text=spoken, speakers=job.speakers or None, allow_upsampling=job.allow_upsampling)
    plan = plan_metrics(request)
    # Quick steps come first, so the first results appear soon.
    chosen = tuple(
        sorted((metric for metric in plan.metrics if metric.name in job.metrics), key=lambda metric: len(metric.needs))
    )
    tell({"left_out": {name: plan.left_out[name] for name in job.metrics if name in plan.left_out}})
    source = read_source(job.recording, name=job.name)
    words = ReportWords(job.language)
    teller = StepTeller(tell, words)
    for number, metric in enumerate(chosen):
        title = translate(metric.title, job.language)
        teller.begin(number / len(chosen), words["progress"]["metric"].format(number + 1, len(chosen), title))
        with progress.listen(teller):
            scores = score_source(source, request, MetricPlan((metric,)))
        tell(
            {
                "metric": metric.name,
                "result": scores.results[metric.name].to_json(),
                "protocol": scores.protocols[metric.name],
                "facts": asdict(scores.facts),
                "defects": [asdict(defect) for defect in scores.defects],
            }
        )
    from podeval.measuring.report import write_report

    teller.begin(1.0, words["progress"]["report"])
    everything = score_source(source, request, replace(plan, metrics=chosen))
    write_report(everything, job.out / REPORT, job.language)


class StepTeller:
    """A progress listener that reports the position in a step and its remaining time, in the language of the reader.

    Args:
        tell: function that receives `at`, the completed share of the work, and `what`, a phrase such as `3 of 21: Word
            error rate · transcribing 1:20 of 3:40, about 40 s left`, at most twice per second.
        words: the texts; a step without a name in these texts is not reported.
    """

    def __init__(self, tell: Callable[[Mapping[str, Any]], None], words: ReportWords) -> None:
        self._tell, self._words, self._texts = tell, words, words["progress"]
        self._begun: dict[str, tuple[float, float]] = {}
        self._at, self._what, self._last = 0.0, "", 0.0

    def begin(self, at: float, what: str) -> None:
        """Report the activity that begins; the next steps belong to it."""
        self._at, self._what = at, what
        self._tell({"at": at, "what": what})

    def __call__(self, what: str, done: float, total: float) -> None:
        """Report a step, unless the previous report is less than half a second old."""
        now, name = time.monotonic(), self._texts["steps"].get(what)
        start, before = self._begun.setdefault(what, (now, done))
        if done < before:
            start, before = self._begun[what] = (now, done)
        if name is None or (done < total and now - self._last < _PAUSE):
            return
        if done >= total:
            # The next step may not report anything itself.
            self.begin(self._at, self._what)
            return
        self._last = now
        write = format_clock if what in progress.SECONDS else round
        phrase = name if total == 1 else self._texts["step"].format(name, write(done), write(total))
        if now - start > _SOON and done > before:
            left = self._words.length(max(5, 5 * round((now - start) * (total - done) / (done - before) / 5)))
            phrase += self._texts["left"].format(left)
        self._tell({"at": self._at, "what": f"{self._what} · {phrase}"})


def _score_script(job: ScoreJob, tell: Callable[[Mapping[str, Any]], None]) -> None:
    inputs = MetricInputs(dict.fromkeys(VISITOR_INPUTS["script"], job.text), keep=True)
    inputs.read()  # unreadable inputs are reported before anything is measured
    for metric in map(catalogue.get, job.metrics):
        selected = inputs.select(metric)
        result = compute(metric, [selected], input_names=tuple(selected))
        no_recording = {"facts": asdict(RecordingFacts()), "defects": []}
        tell({"metric": metric.name, "result": result["items"][0], "protocol": result["protocol"], **no_recording})


def run_job(
    score_job: ScoreJob,
    readable: Sequence[Path],
    limits: sandbox.SandboxLimits,
    watch: Callable[[sandbox.Running], None],
) -> Iterator[ScoreSession]:
    """Run the program in a sandbox; yield all its reports so far whenever there is a new report, and at the end.

    Args:
        score_job: the job to do.
        readable: the files and folders that the program reads, in addition to the weights.
        limits: the limits of the sandbox.
        watch: function that is called while there are no new reports; it may stop the sandbox.
    """
    out, metrics = score_job.out, score_job.metrics
    os.chmod(out.parent, 0o755)  # noqa: S103 - the process may be another user's
    job = out / "job.json"
    job.write_text(score_job.model_dump_json(), encoding="utf-8")
    threads = str(max(1, (os.cpu_count() or 2) // 2))
    settings = {
        "PODEVAL_CACHE": str(out / "cache"),
        "PODEVAL_MODELS": str(weights.locate_root()),
        "PODEVAL_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        **({} if set(OF_PITCH).isdisjoint(metrics) else copy_compiled(out)),
    }
    command = sandbox.build_python_command("podeval.measuring.isolated", str(job))
    session, start = ScoreSession(), 0
    box = sandbox.SandboxSpec(command, out, [weights.locate_root(), *readable], limits, settings, own=True)
    with sandbox.open_sandbox(box) as running:
        alive, last = True, time.monotonic()
        while alive:
            # The state is read before the lines, so the last lines are not missed.
            alive = running.alive
            start, changed = _read_lines(out / LINES, start, session)
            if alive and (changed or time.monotonic() - last > HEARTBEAT):
                yield session
                last = time.monotonic()
            elif alive:
                watch(running)
                time.sleep(0.2)
        ended = running.wait()
    if not session.problem and ended.failure:
        session.problem = _blame(ended)
    report = out / REPORT
    if not report.is_symlink() and report.is_file():
        session.report = report.read_bytes()
    yield session


def _read_lines(path: Path, start: int, session: ScoreSession) -> tuple[int, bool]:
    """Read complete lines from a position onwards; return the position of the next line, and whether there were any
    lines.
    """
    try:
        with path.open("rb") as file:
            file.seek(start)
            content = file.read(_MOST_LINES)
    except OSError:
        return start, False
    whole = content[: content.rfind(b"\n") + 1]
    for text in whole.splitlines():
        line = json.loads(text)
        if "at" in line:
            session.at, session.what = float(line["at"]), str(line["what"])
        elif "refused" in line:
            session.problem = str(line["refused"])
        else:
            session.lines.append(line)
    return start + len(whole), bool(whole)


def _blame(ended: sandbox.ExitInfo) -> str:
    """Return the reason why the program ended, and the party at fault."""
    stopped = ended.stopped or ""
    if "longer than" in stopped or "more than" in stopped:
        return write_sentence("measuring-over-limit", why=stopped)
    if "left too little" in stopped:
        return write_sentence("measuring-no-room", why=stopped)
    return write_sentence("measuring-failed")


def copy_compiled(folder: Path) -> dict[str, str]:
    """Copy the code of librosa's pitch tracker, compiled by numba, into a sandbox's folder; return the environment
    variable to set.

    A sandbox starts with an empty home folder, in which numba would compile everything again. The copied code was
    compiled by our own process while it analysed a tone of our own. A sandbox cannot change it: an untrusted recording
    can affect only its own copy. If nothing has been compiled yet, nothing is copied, and the code is compiled in the
    background for the next recording.

    Args:
        folder: the folder of the sandbox, before it starts.
    """
    compiled = locate_compiled()
    if compiled is None or not compiled.is_dir():
        begin_compiling()
        return {}
    shutil.copytree(compiled, folder / "numba")
    return {SETTING: str(folder / "numba")}


@cache
def begin_compiling() -> None:
    """Compile in a separate thread, and only once, even if it fails."""
    threading.Thread(target=prepare, name="compiling pitch", daemon=True).start()


def locate_compiled() -> Path | None:
    """Return the path of the compiled code on this machine; None if librosa is not installed."""
    try:
        key = "-".join(f"{name}{metadata.version(name)}" for name in ("librosa", "numba", "numpy"))
    except metadata.PackageNotFoundError:
        return None
    root = Path(os.environ.get("PODEVAL_CACHE") or platformdirs.user_cache_dir("podeval"), "numba")
    return root / f"python{sys.version_info.major}.{sys.version_info.minor}-{key}"


def prepare() -> Path | None:
    """Compile missing code on this machine, and return its folder; None if it cannot be compiled."""
    folder = locate_compiled()
    if folder is None or folder.is_dir():
        return folder
    root = folder.parent
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=root) as making:
            compiled = Path(making, "numba")
            compiled.mkdir()
            settings = {**os.environ, SETTING: str(compiled)}
            subprocess.run([sys.executable, "-c", _PROGRAM], env=settings, check=True, timeout=COMPILING_SECONDS)
            if not folder.is_dir():
                compiled.rename(folder)
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.warning("the pitch tracker cannot be compiled in advance, so each measurement compiles it: %s", error)
    return folder if folder.is_dir() else None


def main(job_file: str) -> None:
    """Score the recording of a job."""
    job = ScoreJob.model_validate_json(Path(job_file).read_text(encoding="utf-8"))
    with (job.out / LINES).open("a", encoding="utf-8") as file:

        def tell(line: Mapping[str, Any]) -> None:
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
            file.flush()

        try:
            score_job(job, tell)
        except PodevalError as error:
            tell({"refused": str(error)[:2_000]})


if __name__ == "__main__":
    main(sys.argv[1])
