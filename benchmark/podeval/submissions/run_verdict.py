"""Say at once whether a model repo can be run here, as which class of model, and why where it cannot.

Only the repo's small files are read, as the gate reads them; nothing of it is downloaded or run.
"""

from dataclasses import dataclass

from podeval.errors import BadInput
from podeval.hub import repo_info
from podeval.sentences import write_sentence
from podeval.submissions.gate import Gate
from podeval.submissions.rules import Refusal, SubmissionRefused
from podeval.systems.adapters.adapter import Adapter, ModelClass, find_adapter
from podeval.systems.submission import Model, Submission


@dataclass(frozen=True)
class RunVerdict:
    """Whether a model can be run.

    Attributes:
        runs_as: title of its class of models; empty where it cannot be run.
        reasons: why it cannot be run as it is.
    """

    runs_as: str
    reasons: tuple[Refusal, ...]


def judge_model(document: Submission, gate: Gate) -> RunVerdict:
    """Judge the model of a document.

    Args:
        document: its source is a model.
        gate: the gate of this board.

    Raises:
        BadInput: the source is no model.
        HubUnavailable: the Hub does not answer.
    """
    source = document.source
    if not isinstance(source, Model):
        raise BadInput(write_sentence("kind-is-no-model", kind=source.kind))
    reasons: list[Refusal] = []
    try:
        gate.check(document)
    except SubmissionRefused as error:
        reasons += error.refusals
    try:
        adapter = find_adapter(source.task)
        model_class = _find_class(adapter, source, gate)
    except BadInput as error:
        return RunVerdict("", (*reasons, Refusal("task", error.sentence)))
    return RunVerdict("" if reasons else model_class, tuple(reasons))


def _find_class(adapter: Adapter, source: Model, gate: Gate) -> str:
    """Return the title of a model's class, by its config; of an adapter on a base model, that of its task.

    Raises:
        BadInput: no adapter of the task opens models of its class.
    """
    try:
        configs = repo_info.collect_facts(source.repo, source.revision, api=gate.api).configs
    except (repo_info.NotThere, repo_info.NotReadable) as error:
        raise BadInput(str(error)) from None
    config = configs.get("config.json")
    if "adapter_config.json" in configs or not adapter.models:
        return adapter.title
    model_type = config.get("model_type") if isinstance(config, dict) else None
    match: ModelClass | None = next((model for model in adapter.models if model.type == model_type), None)
    if match is None:
        titles = ", ".join(model.title for model in adapter.models)
        kind = f"of type {model_type!r:.60}" if isinstance(model_type, str) else "without a model_type in config.json"
        about = {"repo": source.repo, "kind": kind, "task": source.task, "classes": titles}
        raise BadInput(write_sentence("class-does-not-run", **about))
    return match.title
