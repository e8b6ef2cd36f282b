"""List the steps of every construction with their inputs, and run a step in its folder.

A step is a function that takes a workshop and, by name, some of these inputs: `files`, `judging` (a judge), `encode` (a
sentence encoder), `read` (fetches documents), `accept_all`. Its keyword-only parameters are its settings, and their
annotations describe each setting and its values.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from podeval.construction import lfs, mtalk, podbench, real_pod
from podeval.construction.workshop import Encode, Step, Workshop
from podeval.datasets.fetch_episodes import make_web
from podeval.errors import BadInput, ModelMissing, describe_validation_error, require_known
from podeval.files import lock_folder
from podeval.judges.budget import Budget
from podeval.judges.client import JudgeClient
from podeval.judges.judge import find_judge
from podeval.models import registry

STEPS: Mapping[str, Mapping[str, Step]] = {
    "real_pod": real_pod.STEPS,
    "lfs_bench": lfs.STEPS,
    "podbench": podbench.STEPS,
    "mtalk_bench": mtalk.STEPS,
}
"""The steps of each benchmark by name, in their order."""


def find_step(benchmark: str, step: str) -> Step:
    """Return a step by its name.

    Raises:
        BadInput: the benchmark or step does not exist; the message lists those that exist.
    """
    require_known("benchmark to construct", STEPS, benchmark)
    require_known(f"step of {benchmark}", STEPS[benchmark], step)
    return STEPS[benchmark][step]


def describe_steps(benchmark: str) -> str:
    """Describe the steps of a benchmark in order, with their inputs and settings.

    Raises:
        BadInput: the benchmark does not exist.
    """
    require_known("benchmark to construct", STEPS, benchmark)
    lines = []
    for name, step in STEPS[benchmark].items():
        needs = [text for need, text in _NEEDS.items() if need in inspect.signature(step).parameters]
        lines += ["", f"{name}: {(inspect.getdoc(step) or '').partition(chr(10))[0]}"]
        lines += [f"    takes {', '.join(needs)}"] if needs else []
        for setting in _list_settings(step).values():
            default = ",".join(map(str, setting.default)) if isinstance(setting.default, tuple) else setting.default
            lines.append(f"    {setting.name}={default}: {get_args(setting.annotation)[1].description}")
    return "\n".join(lines[1:])


_NEEDS = {"files": "FILEs", "judging": "--judge", "encode": "--profile", "accept_all": "--accept-all"}
"""The inputs that a step may take, by parameter name, each as written on the command line."""


def read_settings(step: Step, texts: Sequence[str]) -> dict[str, Any]:
    """Read a step's settings from strings of the form `NAME=VALUE`; lists are separated by commas.

    Raises:
        BadInput: a setting is unknown or cannot have this value.
    """
    choice, settings = _list_settings(step), dict[str, Any]()
    for text in texts:
        name, equals, value = text.partition("=")
        require_known("setting", choice, name)
        if not equals:
            raise BadInput(f"the setting {name} has no value; write it as {name}=VALUE")
        kind = choice[name].annotation
        values = value.split(",") if get_origin(get_args(kind)[0]) is tuple else value
        try:
            settings[name] = TypeAdapter(kind).validate_python(values)
        except ValidationError as error:
            raise BadInput(f"{name}={value} is not allowed: {describe_validation_error(error)}") from None
    return settings


def run_step(
    workshop: Workshop,
    step: Step,
    settings: Mapping[str, Any],
    *,
    files: Sequence[Path] = (),
    accept_all: bool = False,
    profile: str = "embedded",
    judge: str = "",
    workers: int = 4,
    budget: Budget | None = None,
) -> None:
    """Run a step in its folder, and add the report to `workshop`; no other process may use the folder at the same time.

    The judge's records are kept in the folder. Answered questions are not asked again, but questions without a usable
    answer are asked again, so once the judge works, the same command resumes the step.

    Args:
        workshop: the folder.
        step: the step.
        settings: the settings of the step.
        files: the files to import, for steps that import files.
        accept_all: whether to keep rows without a decision.
        profile: the profile whose models are used.
        judge: the judge or language model to ask.
        workers: the maximum number of concurrent questions.
        budget: the limits on using the judge.

    Raises:
        BadInput: a required input is missing, or an input is given that the step does not use.
        BrokenRules: rows break the rules of the dataset.
        ModelMissing: a required model is not installed; this is raised before any question is sent to a judge.
    """
    takes = set(inspect.signature(step).parameters)
    registry.require_profile(profile)
    for name, value in {"files": files, "accept_all": accept_all, "judging": judge}.items():
        if value and name not in takes:
            raise BadInput(f"this step does not use {_NEEDS[name]}; leave it out")
        if not value and name in takes and name != "accept_all":
            raise BadInput(f"this step needs {_NEEDS[name]}; add it")
    client = None
    if judge:
        chosen = find_judge(judge)
        records = None if chosen.replays else workshop.folder / "records"
        client = JudgeClient(chosen, records, workers=workers, budget=budget or Budget(), refresh="failed")
    supplies: dict[str, Callable[[], Any]] = {
        "files": lambda: files,
        "accept_all": lambda: accept_all,
        "judging": lambda: client,
        "encode": lambda: make_encoder(profile),
        "read": lambda: make_web().read,
    }
    arguments = {name: supply() for name, supply in supplies.items() if name in takes}
    try:
        with lock_folder(workshop.folder):
            step(workshop, **arguments, **settings)
    finally:
        if client:
            print(f"judge: {client.account.sentence()}", file=sys.stderr)


def make_encoder(profile: str) -> Encode:
    """Make the function that turns English sentences into vectors with the profile's sentence encoder.

    Raises:
        ModelMissing: the encoder is not installed; the message names the command to run.
    """
    if reason := registry.get_card("sentence_encoder", profile).missing():
        raise ModelMissing(reason)
    return lambda texts: registry.load("sentence_encoder", profile).encode(texts, "en")


def _list_settings(step: Step) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(step, eval_str=True).parameters.values()
    return {parameter.name: parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
