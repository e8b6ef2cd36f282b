"""The gate checks submissions before they are queued. It neither runs code from a repo nor downloads weights.

All broken rules are reported together, by name and with the remedy (`rules.RULES`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from huggingface_hub import HfApi

from podeval.errors import BadInput
from podeval.hub import repo_info as hub
from podeval.submissions.benchmark_entries import TASKS, RunEntry, list_entries
from podeval.submissions.rules import GateLimits, Refusal, SubmissionRefused, select_refusals, write_refusal
from podeval.submissions.source_files import hash_folder, list_files, list_refusals
from podeval.systems.adapters.adapter import find_adapter
from podeval.systems.adapters.snapshot import MODEL_TYPE, PATTERNS, REFUSED, VOICES_FILE, collect_keys
from podeval.systems.submission import BuiltIn, Human, Model, Outputs, PinnedRepo, Submission
from podeval.texts import write_sentence

CODE = (".py", ".pyc", ".pyd", ".so", ".dll", ".dylib", ".sh", ".bat", ".ps1", ".js", ".ipynb", ".exe", ".whl", ".jar")
UNSAFE_WEIGHTS = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".msgpack", ".h5", ".joblib", ".npz", ".onnx")
_ASKS_FOR_CODE = ("auto_map", "custom_pipelines", "trust_remote_code")
_CARD_LEAST = 200
_OPEN_LICENCES = ("other", "unknown")
_UNWRITTEN = ("in a few sentences for someone who has not heard of it.", "Say here in a few sentences what it is.")
"""Phrases with which unfinished descriptions end, in the template and in a draft made from a run."""


@dataclass(frozen=True)
class PinnedSource:
    """The repos and commits that passed the gate; they are stored with the submission, and only these commits are run.

    Attributes:
        base: the repo that an adapter adapts, with its commit.
        parameters, weight_bytes: totals for the model and its base, as stated in the headers of the weights.
        content: digest of the content of a supplied folder.
    """

    repo: str = ""
    revision: str = ""
    base: dict[str, str] | None = None
    licence: str = ""
    parameters: int = 0
    weight_bytes: int = 0
    output_bytes: int = 0
    content: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {**asdict(self), "passed": True}


@dataclass(frozen=True)
class Gate:
    """The gate that checks submissions before they are queued.

    Attributes:
        limits: the limits of this board.
        api: the Hub's client; by default, a client with the token of the logged-in user.
        local: whether outputs may come from folders on this machine.
        data: folder of built datasets.
        uploads: folder of uploads; outputs may always come from this folder.
        trial: runs whose outputs are checked in place of the document's entries.
    """

    limits: GateLimits = field(default_factory=GateLimits)
    api: HfApi | None = None
    local: bool = True
    data: Path | None = None
    uploads: Path | None = None
    trial: tuple[RunEntry, ...] = ()

    def check(self, document: Submission, document_folder: Path | None = None) -> PinnedSource:
        """Check a submission against every rule.

        Raises:
            SubmissionRefused: a rule is broken; the error lists all broken rules.
            HubUnavailable: the Hub does not answer.
        """
        source = document.source
        if getattr(source, "repo", None) and (unfilled := list(list_placeholders(document))):
            # Check the placeholders first, so that the Hub is not queried about a repo in an unfilled template.
            raise SubmissionRefused(*unfilled, *check_task(document))
        if isinstance(source, Outputs | Human) and (shared := list(check_task(document))):
            raise SubmissionRefused(*shared)
        match source:
            case Model():
                return self._check_model(document, source)
            case Outputs() | Human():
                return self._check_outputs(document, source, document_folder)
            case BuiltIn():
                return PinnedSource(licence=document.system.licence)
        raise SubmissionRefused(write_refusal("document", "kind-not-run", kind=source.kind))

    def _check_model(self, document: Submission, source: Model) -> PinnedSource:
        repo = self._read_facts(source.repo, source.revision)
        refusals = [*check_repo(repo, document.system.licence, self.limits), *_check_weights(repo)]
        refusals += [*check_task(document), *check_consent(source, repo.files)]
        # Check the base model of an adapter as well.
        base = None
        parts = [repo]
        if "adapter_config.json" in repo.files:
            base, under = self._check_base(repo, source.base, refusals)
            parts += [under] if under else []
        else:
            refusals += select_refusals(
                (source.base is not None, "base", "no-adapter-repo", {"repo": source.repo}),
                ("config.json" not in repo.files, "task", "no-config", {"repo": source.repo}),
            )
        # Add up the weights of the model and its base.
        size = sum(size for part in parts for name, size in part.files.items() if name in part.weights)
        count = sum(weights.parameters for part in parts for weights in part.weights.values() if weights)
        refusals += _check_size(size, count, self.limits)
        if (beside := sum(map(_count_other_bytes, parts))) > self.limits.other_bytes:
            refusals.append(
                write_refusal(
                    "volume",
                    "beside-weights-too-large",
                    size=f"{beside / 10**9:.1f}",
                    most=f"{self.limits.other_bytes / 10**9:g}",
                )
            )
        if refusals:
            raise SubmissionRefused(*refusals)
        return PinnedSource(
            repo=source.repo,
            revision=source.revision,
            base=base.model_dump() if base else None,
            licence=document.system.licence,
            parameters=count,
            weight_bytes=size,
        )

    def _check_base(
        self, repo: hub.RepoFacts, stated_base: PinnedRepo | None, refusals: list[Refusal]
    ) -> tuple[PinnedRepo | None, hub.RepoFacts | None]:
        """Check an adapter's base model against the same rules; the repo and the document must name the same base."""
        config = repo.configs.get("adapter_config.json")
        stated = config.get("base_model_name_or_path") if isinstance(config, dict) else None
        if not isinstance(stated, str) or not re.fullmatch(r"[\w.-]+/[\w.-]+", stated, re.ASCII):
            refusals.append(write_refusal("base", "base-not-named"))
            return None, None
        if stated_base is not None and stated_base.repo != stated:
            refusals.append(write_refusal("base", "base-differs", stated=stated, named=stated_base.repo))
            return None, None
        try:
            pinned = stated_base or PinnedRepo(repo=stated, revision=hub.resolve(stated, api=self.api))
            under = self._read_facts(pinned.repo, pinned.revision)
        except (SubmissionRefused, hub.NotThere, hub.NotReadable, ValueError) as error:
            problem = error.reason if isinstance(error, SubmissionRefused) else str(error)
            refusals.append(write_refusal("base", "base-unusable", repo=stated, problem=problem))
            return None, None
        problems = [*check_repo(under, None, self.limits), *_check_weights(under)]
        if "adapter_config.json" in under.files:
            problems.append(write_refusal("base", "base-is-adapter"))
        refusals += [
            write_refusal("base", "base-does-not-pass", repo=pinned.repo, rule=each.rule, problem=each.message)
            for each in problems
        ]
        return pinned, under

    def _check_outputs(
        self, document: Submission, source: Outputs | Human, document_folder: Path | None
    ) -> PinnedSource:
        # Outputs come from a repo, or from a folder next to the document.
        refusals = list(list_placeholders(document))
        refusals += check_consent(source) if isinstance(source, Outputs) else ()
        if source.repo is not None and source.revision is not None:
            dataset = self._read_facts(source.repo, source.revision, "dataset")
            refusals += [each for each in check_repo(dataset, None, self.limits) if each.rule != "code"]
            files: Mapping[str, int] = dataset.files
            repo, revision = source.repo, source.revision

            def read(name: str) -> bytes:
                return hub.fetch_content(repo, revision, name, api=self.api, kind="dataset")
        elif document_folder is None or not (self.local or document_folder == self.uploads):
            raise SubmissionRefused(write_refusal("exists", "outputs-from-folder"))
        else:
            folder = document_folder / str(source.folder)
            files, read = list_files(folder), lambda name: (folder / name).read_bytes()
        refusals += list_refusals(files, self.trial or list_entries(document), self.limits, data=self.data, read=read)
        if refusals:
            raise SubmissionRefused(*refusals)
        return PinnedSource(
            repo=source.repo or "",
            revision=source.revision or "",
            licence=document.system.licence,
            output_bytes=sum(files.values()),
            content="" if source.repo or document_folder is None else hash_folder(document_folder / str(source.folder)),
        )

    def _read_facts(self, repo: str, revision: str, kind: hub.Kind = "model") -> hub.RepoFacts:
        try:
            return hub.collect_facts(repo, revision, api=self.api, kind=kind)
        except hub.NotThere as error:
            problem = write_sentence("repo-not-there", problem=str(error))
            raise SubmissionRefused(Refusal("exists", problem)) from None
        except hub.NotReadable as error:
            problem = write_sentence("repo-not-readable", problem=str(error))
            raise SubmissionRefused(Refusal("readable", problem)) from None


def _count_other_bytes(repo: hub.RepoFacts) -> int:
    """Count the bytes of the files that are fetched from a model's repo in addition to its weights."""
    from huggingface_hub.utils import filter_repo_objects  # type: ignore[attr-defined]

    others = (name for name in repo.files if name not in repo.weights)
    fetched = filter_repo_objects(others, allow_patterns=list(PATTERNS), ignore_patterns=list(REFUSED))
    return sum(repo.files[name] for name in fetched)


def check_repo(repo: hub.RepoFacts, licence: str | None, limits: GateLimits) -> Iterator[Refusal]:
    """Check the rules that apply to both models and outputs."""
    name, files, configs = repo.repo, len(repo.files), sum(map(hub.is_config, repo.files))
    code = [file for file in repo.files if file.lower().endswith(CODE)]
    yield from select_refusals(
        (repo.private, "readable", "repo-private", {"repo": name}),
        (repo.gated, "readable", "repo-gated", {"repo": name}),
        (not repo.on_main, "pinned", "commit-off-main", {"revision": repo.revision[:12], "repo": name}),
    )
    yield from _check_card(repo, licence)
    too_many = {"repo": name, "count": files, "most": limits.files}
    too_many_configs = {"repo": name, "count": configs, "most": hub.CONFIGS_MOST}
    yield from select_refusals(
        (files > limits.files, "volume", "too-many-files", too_many),
        (configs > hub.CONFIGS_MOST, "volume", "too-many-configs", too_many_configs),
        (code, "code", "repo-holds-code", {"repo": name, "files": _list_some(code)}),
    )


def _check_card(repo: hub.RepoFacts, licence: str | None) -> Iterator[Refusal]:
    if len(repo.card_text.strip()) < _CARD_LEAST:
        yield write_refusal("card", "card-too-short", repo=repo.repo, least=_CARD_LEAST)
    stated = repo.card.get("license")
    if not isinstance(stated, str) or not stated.strip():
        yield write_refusal("licence", "card-without-licence", repo=repo.repo)
        return
    licence_name = repo.card.get("license_name")
    # Accept only text: a YAML list of lists of the same lists is short in the file but huge when it is converted to
    # text.
    licence_name = licence_name if isinstance(licence_name, str) else ""
    names = {stated.casefold(), licence_name.casefold()}
    if (
        licence is not None
        and licence.casefold() not in names
        and not (stated in _OPEN_LICENCES and licence in ("proprietary", "unknown"))
    ):
        yield write_refusal(
            "licence", "licences-differ", repo=repo.repo, stated=licence_name or stated, licence=licence
        )


def _check_weights(repo: hub.RepoFacts) -> Iterator[Refusal]:
    """Check that the weights are complete safetensors and that no file can contain code."""
    config = repo.configs.get("config.json")
    # One class of models has voices in a pickle of tensors; that file is checked when it is fetched.
    opened = VOICES_FILE if isinstance(config, dict) and config.get("model_type") == MODEL_TYPE else ""
    unsafe = [name for name in repo.files if name.lower().endswith(UNSAFE_WEIGHTS) and name != opened]
    yield from select_refusals(
        (unsafe, "safetensors", "unsafe-weights", {"repo": repo.repo, "files": _list_some(unsafe)}),
        (not repo.weights, "safetensors", "no-weights", {"repo": repo.repo}),
    )
    if len(repo.weights) > hub.SHARDS_MOST:
        yield write_refusal(
            "safetensors", "too-many-shards", repo=repo.repo, count=len(repo.weights), most=hub.SHARDS_MOST
        )
        return
    for name, weights in repo.weights.items():
        size = repo.files[name]
        if weights is None:
            most = hub.HEADER_MOST // 2**20
            yield write_refusal("safetensors", "weights-header-unreadable", file=name, most=most)
        elif not 0 <= size - weights.claimed - 8 <= 100 * 2**20:
            yield write_refusal("safetensors", "weights-of-other-size", file=name, size=size, claimed=weights.claimed)
    for name, config in repo.configs.items():
        if fields := sorted(collect_keys(config) & set(_ASKS_FOR_CODE)):
            yield write_refusal(
                "remote_code", "config-asks-for-code", file=name, repo=repo.repo, fields=", ".join(fields)
            )


def _check_size(size: int, count: int, limits: GateLimits) -> Iterator[Refusal]:
    if size > limits.weight_bytes:
        yield write_refusal(
            "size", "weights-too-large", size=f"{size / 1e9:.1f}", most=f"{limits.weight_bytes / 1e9:.0f}"
        )
    elif count > limits.parameters:
        yield write_refusal(
            "size", "too-many-parameters", count=f"{count / 1e9:.1f}", most=f"{limits.parameters / 1e9:.0f}"
        )


def list_placeholders(document: Submission) -> Iterator[Refusal]:
    """Check that the placeholders in the template, or in a draft made from a run, are filled in."""
    source = document.source
    fields = {
        "system.description": document.system.description.strip().endswith(_UNWRITTEN),
        "source.repo": (getattr(source, "repo", None) or "").startswith("example/my-tts"),
        "source.revision": (getattr(source, "revision", None) or "").startswith("0123456789abcdef" * 2),
    }
    if unfilled := [name for name, left in fields.items() if left]:
        yield write_refusal("document", "still-the-template", fields=", ".join(unfilled))


def check_task(document: Submission) -> Iterator[Refusal]:
    """Check that there is an adapter for the model's task, that the task fits the tracks, and that no two tracks share
    a split.
    """
    runs: dict[str, list[str]] = {}
    for run in list_entries(document):
        runs.setdefault(run.folder, []).append(run.track)
    for folder, tracks in runs.items():
        if len(tracks) > 1:
            yield write_refusal("task", "tracks-share-a-split", folder=folder, tracks=", ".join(tracks))
    if not isinstance(document.source, Model):
        return
    task = document.source.task
    try:
        find_adapter(task)
    except (BadInput, ImportError) as error:
        yield write_refusal("task", "no-adapter-for-task", problem=str(error))
    for entry in document.benchmarks:
        wrong = [track for track in entry.tracks if task not in TASKS.get(track, ())]
        if wrong:
            fitting = ", ".join(sorted({each for track in wrong for each in TASKS.get(track, ())})) or "no model"
            yield write_refusal(
                "task", "task-does-not-fit", task=task, tracks=", ".join(wrong), benchmark=entry.name, fitting=fitting
            )


def check_consent(source: Model | Outputs, files: Iterable[str] = ()) -> Iterator[Refusal]:
    """Check that the document states whose voices are cloned and that they have given permission; this is required if a
    repo has voices.
    """
    consent = source.consent
    if consent is None:
        if voices := [name for name in files if name.lower().endswith(".npy")]:
            yield write_refusal("consent", "consent-not-stated", repo=source.repo, files=_list_some(voices))
    elif (consent.clones or consent.whose or consent.permission) and not (consent.whose and consent.permission):
        yield write_refusal("consent", "consent-incomplete")


def _list_some(names: list[str]) -> str:
    listing = ", ".join(PurePosixPath(name).as_posix()[:80] for name in sorted(names)[:3])
    return listing + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def judge_model(document: Submission, gate: Gate) -> tuple[str, tuple[Refusal, ...]]:
    """Judge whether the model in a document can be run here, using only the small files of its repo and not running any
    code.

    Returns:
        The title of its model class (empty if the model cannot be run), and the reasons why the model cannot be run.

    Raises:
        BadInput: the source is not a model.
        HubUnavailable: the Hub does not answer.
    """
    source = document.source
    if not isinstance(source, Model):
        raise BadInput(write_sentence("kind-is-no-model", kind=source.kind))
    reasons: tuple[Refusal, ...] = ()
    try:
        gate.check(document)
    except SubmissionRefused as error:
        reasons = error.refusals
    try:
        model_class = _find_class(source, gate)
    except BadInput as error:
        return "", (*reasons, Refusal("task", error.sentence))
    return "" if reasons else model_class, reasons


def _find_class(source: Model, gate: Gate) -> str:
    """Return the title of a model's class from its config; for an adapter on a base model, the title of its task.

    Raises:
        BadInput: no adapter for the task opens models of this class.
    """
    adapter = find_adapter(source.task)
    try:
        configs = hub.collect_facts(source.repo, source.revision, api=gate.api).configs
    except (hub.NotThere, hub.NotReadable) as error:
        raise BadInput(str(error)) from None
    config = configs.get("config.json")
    if "adapter_config.json" in configs or not adapter.models:
        return source.task.replace("-", " ").capitalize()
    model_type = config.get("model_type") if isinstance(config, dict) else None
    title = next((model.title for model in adapter.models if model.type == model_type), None)
    if title is None:
        titles = ", ".join(model.title for model in adapter.models)
        kind = f"of type {model_type!r:.60}" if isinstance(model_type, str) else "without a model_type in config.json"
        raise BadInput(
            write_sentence("class-does-not-run", repo=source.repo, kind=kind, task=source.task, classes=titles)
        )
    return title
