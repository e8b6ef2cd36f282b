"""Have people check the recordings of an MTalk-Bench in three rounds (paper, section 4.2 and appendix B.3).

In each round somebody hears every recording that is due and says yes or no, with what is wrong: the words, the
expression, the sound. A refused recording is made anew and comes into the next round; a turn that is refused three
times is left out, and its dialogue with it. A verdict belongs to the recording that was heard, and to no other file.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from podeval.construction.mtalk_tagging import Dialogue
from podeval.construction.review import ReviewRow, lay_out, read_decisions
from podeval.construction.staged_rows import StagedRow, WaitingRow
from podeval.datasets.mtalk_turns import split_tags

ROUNDS = 3

_QUIET_LUFS = -40.0


class Check(StagedRow):
    """A person's verdict on a recording."""

    turn: str
    round: int
    sha256: str
    accepted: bool
    fault: str = ""
    remark: str = ""


class Due(StagedRow):
    """A recording laid out for a verdict; the verdict applies to this one, also when the file has changed since."""

    turn: str
    round: int
    sha256: str
    shown: dict[str, str]

    @property
    def entry(self) -> ReviewRow:
        """The row of the table."""
        return ReviewRow(self.turn, self.shown, {"fault": ""})


@dataclass(frozen=True)
class Take:
    """A recording of a turn: the turn's id, the text with its tags, the file, and the SHA-256 of its content."""

    turn: str
    text: str
    profile: str
    path: Path
    sha256: str


@dataclass
class State:
    """The state of the checks: verdicts so far, and the next step of every recording."""

    accepted: set[str] = field(default_factory=set)
    gone: dict[str, str] = field(default_factory=dict)
    due: dict[int, list[Take]] = field(default_factory=dict)
    waiting: list[WaitingRow] = field(default_factory=list)


def find_takes(dialogues: Sequence[Dialogue], folder: Path) -> tuple[list[Take], list[WaitingRow]]:
    """Find the recordings, named by turn (`para-3-1-2.wav`, any audio format), and list those still to be made."""
    from podeval.audio.decode import hash_file

    files = {path.stem: path for path in sorted(folder.glob("*")) if path.is_file()} if folder.is_dir() else {}
    takes, missing = list[Take](), list[WaitingRow]()
    for dialogue in dialogues:
        for number, text in enumerate(dialogue.turns, 1):
            turn = f"{dialogue.id}-{number}"
            if turn in files:
                path = files[turn]
                takes.append(Take(turn, text, dialogue.profile, path, hash_file(path)))
            else:
                missing.append(WaitingRow(turn, f"no recording of it lies in {folder}"))
    return takes, missing


def compute_state(takes: Sequence[Take], checks: Sequence[Check]) -> State:
    """Compute the state of every recording from the verdicts so far."""
    state = State()
    verdicts: dict[str, list[Check]] = {}
    for check in checks:
        verdicts.setdefault(check.turn, []).append(check)
    for take in takes:
        its = verdicts.get(take.turn, [])
        refused = [check for check in its if not check.accepted]
        if any(check.accepted and check.sha256 == take.sha256 for check in its):
            state.accepted.add(take.turn)
        elif len(refused) >= ROUNDS:
            faults = ", ".join(check.fault or "no fault named" for check in refused)
            state.gone[take.turn] = f"refused in {ROUNDS} rounds: {faults}"
        elif any(check.sha256 == take.sha256 for check in refused):
            reason = f"refused in round {len(refused)} ({refused[-1].fault or refused[-1].remark}); record it again"
            state.waiting.append(WaitingRow(take.turn, reason))
        else:
            state.due.setdefault(len(refused) + 1, []).append(take)
    return state


def read_verdicts(tables: Mapping[int, Path], laid_out: Sequence[Due]) -> list[Check]:
    """Read the verdicts on the recordings that were laid out, from the tables of the rounds.

    Raises:
        BadInput: a table cannot be used.
    """
    checks = []
    for number, table in tables.items():
        its = {due.turn: due for due in laid_out if due.round == number}
        if not its or not table.is_file():
            continue
        read = read_decisions(table, [due.entry for due in its.values()], f"round {number}")
        checks += [_make_check(its[name], True, edited["fault"]) for name, edited in read.kept.items()]
        for left in read.left_out:
            fault, remark = read.refused[left.id]["fault"], left.reason.partition(": ")[2]
            checks += [_make_check(its[left.id], False, fault, remark)]
    return checks


def lay_out_rounds(tables: Mapping[int, Path], state: State) -> tuple[list[Due], list[WaitingRow]]:
    """Write the tables of the rounds in which recordings are due; return those recordings, which wait for a verdict."""
    laid_out, waiting = list[Due](), list[WaitingRow]()
    for number, takes in sorted(state.due.items()):
        its = [_lay_out_take(take, number) for take in takes]
        lay_out(tables[number], [due.entry for due in its])
        laid_out += its
        waiting += [WaitingRow(due.turn, f"due in round {number}: {tables[number]}") for due in its]
    return laid_out, waiting


def describe_rounds(checks: Sequence[Check]) -> list[str]:
    """Describe how many recordings each round checked and refused, and why, as the paper reports its own."""
    lines = []
    for number in range(1, ROUNDS + 1):
        its = [check for check in checks if check.round == number]
        refused = [check for check in its if not check.accepted]
        if its:
            faults = Counter(check.fault or "no fault named" for check in refused)
            by_fault = f" ({', '.join(f'{count} {fault}' for fault, count in faults.most_common())})" if faults else ""
            lines.append(f"round {number}: {len(its)} heard, {len(refused)} refused{by_fault}")
    return lines


def find_faults(path: Path) -> str:
    """Describe measurable faults of a recording, for the table; "" where there are none."""
    from podeval.analysis import Recording
    from podeval.audio import loudness
    from podeval.errors import BadInput, CannotScore

    try:
        recording = Recording.open(path)
        if recording.defect:
            return recording.defect
        level = loudness.measure(recording.samples, recording.rate).integrated
    except (BadInput, CannotScore) as refusal:
        return str(refusal)
    return f"quiet: {level:.0f} LUFS" if level < _QUIET_LUFS else ""


def _lay_out_take(take: Take, number: int) -> Due:
    words, tags = split_tags(take.text)
    context = {
        "file": take.path.name,
        "to be said": words,
        "tags": ", ".join(tags),
        "voice": take.profile,
        "heard by machine": find_faults(take.path),
        "recording": take.sha256[:12],
    }
    return Due(id=f"{take.turn}/{number}", turn=take.turn, round=number, sha256=take.sha256, shown=context)


def _make_check(due: Due, accepted: bool, fault: str, remark: str = "") -> Check:
    return Check(
        id=f"{due.turn}/{due.round}/{due.sha256[:12]}",
        turn=due.turn,
        round=due.round,
        sha256=due.sha256,
        accepted=accepted,
        fault=fault.strip(),
        remark=remark,
    )
