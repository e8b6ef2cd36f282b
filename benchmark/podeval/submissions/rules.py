"""The rules of the gate and the limits of this board, and the reasons why a submission is refused or must wait."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from podeval.errors import BadInput, PodevalError
from podeval.systems.submission_reading import BadDocument
from podeval.texts import write_sentence

RULES = {
    "document": "the document is valid and describes something that can be run",
    "exists": "the repo and the commit exist",
    "readable": "podeval may read the repo: it is public and not gated",
    "pinned": "the commit is in the history of the repo's main branch",
    "licence": "the repo's card states a licence, which is the same as in the document",
    "card": "the repo has a card that says what the system is",
    "size": "the weights fit the limits of this board, according to their headers",
    "safetensors": "the weights are safetensors, complete and as their headers state",
    "remote_code": "no configuration asks to run code from the repo",
    "code": "the repo contains no code",
    "consent": "everyone whose voice is cloned from a recording other than the benchmark's has permitted it",
    "base": "the base model of an adapter is known and pinned, and passes the same rules",
    "task": "an adapter of podeval can run the task on the tracks that are entered",
    "duplicate": "it has not been submitted before",
    "taken_down": "none of its content was taken down from this board",
    "quota": "no submitter has too many submissions in the queue",
    "open": "the board accepts submissions at the moment",
    "manifest": "there is one output for every item of the tracks that are entered",
    "names": "files are in the folder, have plain names and are not links",
    "volume": "all files together stay within the limits",
    "audio": "every recording can be decoded, and its length and rate are plausible",
    "script": "every script is readable as a script",
}
"""Every rule of the gate, with its requirement."""


@dataclass(frozen=True)
class Refusal:
    """One broken rule: `message` states the fault and the remedy, and `field` is the field of the document that
    contains the fault.
    """

    rule: str
    message: str
    field: str = ""

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"there is no rule {self.rule}")

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


def write_refusal(rule: str, code: str, /, **values: object) -> Refusal:
    """Return a refusal under a rule, with a sentence from `texts.SENTENCES` and the sentence's values."""
    return Refusal(rule, write_sentence(code, **values))


def select_refusals(*faults: tuple[object, str, str, Mapping[str, object]]) -> list[Refusal]:
    """Write a refusal for each fault; a fault is given as a rule, the code of its sentence, and its values."""
    return [write_refusal(rule, code, **values) for is_there, rule, code, values in faults if is_there]


class SubmissionRefused(BadInput):
    """A submission is not accepted; the message has a line for every broken rule."""

    def __init__(self, *refusals: Refusal) -> None:
        self.refusals = refusals
        super().__init__(write_sentence("not-taken", problems="\n  ".join(map(str, refusals))))

    @property
    def rule(self) -> str:
        """The first broken rule."""
        return self.refusals[0].rule

    @property
    def reason(self) -> str:
        """All broken rules with the necessary changes, one per line."""
        return "\n".join(map(str, self.refusals))


def describe_refusals(error: BadDocument | SubmissionRefused) -> list[dict[str, str]]:
    """Return every broken rule: its name, its requirement, the finding, and the field of the document."""
    refusals: Iterable[Refusal] = (
        error.refusals
        if isinstance(error, SubmissionRefused)
        else [Refusal("document", problem.message, problem.field) for problem in error.problems]
    )
    return [vars(each) | {"asks": RULES[each.rule], "code": getattr(each.message, "code", "")} for each in refusals]


class MachineFault(PodevalError):
    """This machine cannot run the submission; the message tells the operator what to do.

    Attributes:
        everything: whether the machine is also unable to run any other submission.
    """

    def __init__(self, sentence: str, *, everything: bool = False) -> None:
        self.everything = everything
        super().__init__(sentence)


class OursFailed(PodevalError):
    """An output is missing through no fault of the system, as reported by the sandboxed program."""


@dataclass(frozen=True)
class GateLimits:
    """This board's limits on running models and storing files.

    Attributes:
        weight_bytes: total size of the weights of a model and its base.
        parameters: total number of parameters of a model and its base.
        files: number of files in a repo.
        other_bytes: total size of the files fetched in addition to the weights: configs, tokenizers, voices.
        output_bytes: total size of the supplied outputs.
        output_file_bytes: size of one supplied output.
    """

    weight_bytes: int = 160 * 10**9
    parameters: int = 80 * 10**9
    files: int = 5_000
    other_bytes: int = 2 * 10**9
    output_bytes: int = 50 * 10**9
    output_file_bytes: int = 4 * 10**9


@dataclass(frozen=True)
class Policy:
    """The settings of the queue that an operator can change.

    Attributes:
        lease_seconds: time after which a silent worker is considered dead.
        failures_allowed: number of consecutive claims without a finished item before the submission is given up.
        pause_seconds: pause after the first failure before another attempt; the pause doubles with each further
            failure.
        open_per_owner: maximum number of unfinished submissions of one owner.
        day_per_owner: maximum number of submissions of one owner in 24 hours.
        most_waiting: maximum number of unfinished submissions of all owners.
    """

    lease_seconds: float = 120.0
    failures_allowed: int = 3
    pause_seconds: float = 30.0
    open_per_owner: int = 5
    day_per_owner: int = 10
    most_waiting: int = 500
