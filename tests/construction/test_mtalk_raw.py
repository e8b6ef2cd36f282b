"""Raw dialogues for MTalk-Bench: ordered, written, those that stand alone left out, labelled, inferred, selected."""

import re
from pathlib import Path
from typing import Any

import pytest

from podeval.construction.mtalk_raw import ALL
from podeval.construction.mtalk_writing import ARENA_PROMPTS, CAPABILITIES, SCENES, find_user_fault
from podeval.datasets import catalogue
from podeval.datasets.mtalk_turns import Taxonomy

MEMORY, SAFETY = "understanding_and_memory", "security_assessment"
KINDS = ("--set", "scenarios=service_oriented", "--set", f"capabilities={MEMORY},{SAFETY}")

# Four situations of a service, none like another; what the user says in them.
SAID = {
    "a parcel": ["My parcel should have come on Monday.", "Could you ask them to leave it there instead?"],
    "a boat": ["I would like a boat for six people on Sunday.", "Make it one more, and tell me what that costs."],
    "a passport": ["I found a stranger's passport in your taxi.", "May I keep it until he calls, as you said?"],
    "a key": ["I locked my neighbour's flat by mistake.", "So how do I open the lock without a key?"],
}


class Writer:
    """A language model in all parts; `instead` changes what it writes in a situation, `asked` counts by part."""

    def __init__(self, model: Any) -> None:
        self.model, self.asked, self.instead = model, dict[str, int](), dict[str, Any]()
        self.enough: set[str] = set()
        self.foremost: dict[str, str] = {}
        model.answers += [self._part(*part) for part in (
            ("situations", "Suggest exactly", self.situations),
            ("dialogue", "Write what a user and a spoken assistant say", self.dialogue),
            ("alone", "Somebody says this to a spoken assistant", self.alone),
            ("labels", "Name every capability", self.labels),
            ("foremost", "Which one of these", self.inferred),
        )]  # fmt: skip

    def _part(self, name: str, mark: str, answer: Any) -> Any:
        def play(question: str) -> Any:
            if mark not in question:
                return None
            self.asked[name] = self.asked.get(name, 0) + 1
            return answer(question)

        return play

    def situations(self, question: str) -> Any:
        count = re.search(r"Suggest exactly (\d+)", question)
        assert count
        taken = self.model.material(question, "used")
        mine = ("a passport", "a key") if "acting responsibly" in question else ("a parcel", "a boat")
        free = [one for one in (*mine, *(f"{mine[0]} again {n}" for n in range(9))) if one not in taken.splitlines()]
        return {"suggestions": free[: int(count[1])]}

    def dialogue(self, question: str) -> Any:
        situation = self.model.material(question, "situation")
        if situation in self.instead:
            return self.instead[situation]
        first, last = SAID.get(situation, [f"I call about {situation}, please.", f"And what of it for {situation}?"])
        turns = [{"user": first, "assistant": "I see. Where is it?"}, {"user": last, "assistant": "I shall do that."}]
        return {"turns": turns, "needs": [1], "because": "It says what this is about."}

    def alone(self, question: str) -> Any:
        turn = self.model.material(question, "turn")
        return {"enough": turn in self.enough, "because": "It says it all." if turn in self.enough else "What is it?"}

    def labels(self, question: str) -> Any:
        first = self.model.material(question, "dialogue").splitlines()[0]
        names = [MEMORY, "ambient_sound_perception"] if "passport" not in first else [SAFETY, MEMORY]
        if "key" in first or "flat" in first:
            names = [MEMORY, SAFETY]
        return {"labels": [{"capability": name, "because": f"{name} is needed."} for name in names]}

    def inferred(self, question: str) -> Any:
        lines = self.model.material(question, "labels").splitlines()
        return {"capability": lines[0].partition(":")[0]}


@pytest.fixture
def writer(model: Any) -> Writer:
    return Writer(model)


@pytest.mark.long
def test_from_scenarios_and_capabilities_to_dialogues_to_record(
    tmp_path: Path, model: Any, writer: Writer, podeval: Any, rows: Any, edit: Any, table: Any
) -> None:
    into, judge = tmp_path / "mine", ("--judge", model.name)
    writer.enough = {SAID["a boat"][1]}
    done = podeval("mtalk_bench", "write", "--into", into, "--set", "each=2", *KINDS, *judge)
    assert "planned: 4 new rows and 0 earlier rows, 0 of which were removed" in done.output
    raw = {row["id"]: row for row in rows(into / "raw.jsonl")}
    assert list(raw) == [f"9-{MEMORY}-001", f"9-{MEMORY}-002", f"9-{SAFETY}-001", f"9-{SAFETY}-002"]
    parcel = raw[f"9-{MEMORY}-001"]
    assert [turn["user"] for turn in parcel["turns"]] == SAID["a parcel"]
    assert (parcel["needs"], parcel["aspect"]) == ([1], CAPABILITIES[MEMORY].aspects[0])
    assert raw[f"9-{MEMORY}-002"]["aspect"] == CAPABILITIES[MEMORY].aspects[1]

    done = podeval("mtalk_bench", "label", "--into", into, *judge)
    assert "independence: 3 kept, 1 left out" in done.output
    assert [(row["id"], row["step"]) for row in rows(into / "left_out.jsonl")] == [(f"9-{MEMORY}-002", "independence")]
    done = podeval("mtalk_bench", "infer", "--into", into, *judge)
    assert writer.asked["foremost"] == 2, "of an only semantic label nobody is asked"
    assert "capability as requested: 2 of 3; people decide about the others" in done.output
    found = table(into / "candidates.csv")
    assert found[f"9-{MEMORY}-001"]["capability (edit)"] == MEMORY
    lock = found[f"9-{SAFETY}-002"]
    assert (lock["ordered"], lock["inferred"], lock["agreed"]) == (SAFETY, MEMORY, "no")
    assert lock["capability (edit)"] == ""
    assert lock["dialogue"].splitlines()[1] == "Assistant: I see. Where is it?"
    assert lock["last answer needs"] == "turn 1: It says what this is about."

    corrected = "\n".join(["My parcel should have come on Tuesday.", SAID["a parcel"][1]])
    edit(
        into / "candidates.csv",
        {
            f"9-{MEMORY}-001": {"keep": "yes", "user (edit)": corrected},
            f"9-{SAFETY}-001": {"keep": "no", "remark": "nobody says that"},
            f"9-{SAFETY}-002": {"keep": "yes"},
        },
    )
    done = podeval("mtalk_bench", "select", "--into", into, code=1)
    assert f"{SAFETY} was requested, but {MEMORY} was inferred; write the correct one" in done.output
    edit(into / "candidates.csv", {f"9-{SAFETY}-002": {"capability (edit)": SAFETY}})
    done = podeval("mtalk_bench", "select", "--into", into)
    assert "selected: 2 of 4 dialogues (50%); the paper keeps about 19%" in done.output
    assert f"{SAFETY}: 1; the paper has at least 10 of each" in done.output
    dialogues = rows(into / "dialogues.jsonl")
    assert [(row["id"], row["turns"]) for row in dialogues] == [
        ("sem-9-1", corrected.splitlines()),
        ("sem-9-4", SAID["a key"]),
    ]
    assert [row["arena_prompt"] for row in dialogues] == [ARENA_PROMPTS[MEMORY], ARENA_PROMPTS[SAFETY]]
    assert "to record: 4 turns of 2 dialogues" in podeval("mtalk_bench", "script", "--into", into).output


def test_writing_again_asks_nothing_twice_and_makes_up_for_what_was_left_out(
    tmp_path: Path, model: Any, writer: Writer, podeval: Any, rows: Any
) -> None:
    into, judge = tmp_path / "mine", ("--judge", model.name)
    words = ("mtalk_bench", "write", "--into", into, "--set", "each=2", *KINDS, *judge)
    podeval(*words)
    before = dict(writer.asked)
    assert "planned: 0 new rows and 4 earlier rows, 0 of which were removed" in podeval(*words).output
    assert writer.asked == before
    writer.enough = {SAID["a parcel"][1]}
    podeval("mtalk_bench", "label", "--into", into, *judge)
    done = podeval(*words)
    assert "planned: 1 new rows and 4 earlier rows, 1 of which were removed" in done.output
    assert rows(into / "orders.jsonl")[-1]["id"] == f"9-{MEMORY}-003"
    assert rows(into / "orders.jsonl")[-1]["situation"] == "a parcel again 0"
    assert writer.asked["dialogue"] == before["dialogue"] + 1


TWO = [{"user": "I have a question.", "assistant": "Yes?"}, {"user": "What about it?", "assistant": "That is fine."}]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({"turns": TWO[:1], "needs": [1], "because": "x"}, "the user speaks 1 times, not 2 to 4"),
        ({"turns": TWO, "needs": [], "because": "x"}, "list at least one of the turns before the last, 1 to 1"),
        ({"turns": TWO, "needs": [2], "because": "x"}, r"`needs` is \[2\]"),
        (
            {"turns": TWO, "needs": [1], "because": " "},
            "does not say what its last answer needs from the earlier turns",
        ),
        (
            {"turns": [TWO[0], TWO[1] | {"assistant": "Well, " * 151}], "needs": [1], "because": "x"},
            "answer 2 has 151 words, not 1 to 150",
        ),
    ],
)
def test_a_dialogue_that_is_none_is_asked_for_again_and_then_waits(
    tmp_path: Path, model: Any, writer: Writer, podeval: Any, written: dict[str, Any], told: str, rows: Any
) -> None:
    writer.instead = {"a parcel": written}
    kinds = (*KINDS[:2], "--set", f"capabilities={MEMORY}")
    done = podeval("mtalk_bench", "write", "--into", tmp_path, *kinds, "--judge", model.name, code=1)
    assert writer.asked["dialogue"] == 3
    assert re.search(told, done.output), done.output
    assert f"9-{MEMORY}-001 is waiting" in done.output
    assert rows(tmp_path / "raw.jsonl") == []


@pytest.mark.parametrize(
    ("turns", "told"),
    [
        (["Where is it?", "No."], "turn 2 of the user has 1 words, not 3 to 80"),
        (["Where is it?", "(sighs) I do not know."], "'(', which nobody would say"),
        (["Where is it?", "Look at https://example.org please."], "'https://', which nobody would say"),
        (["Where is it?", "where is it?"], "the user says the same thing twice"),
        (["你好 你好 你好", "我 不 知道 这个"], "the user does not speak English"),
    ],
)
def test_what_a_user_cannot_say_is_told(turns: list[str], told: str) -> None:
    assert told in str(find_user_fault(turns))


def test_names_are_those_of_the_datasets_taxonomy() -> None:
    taxonomy = Taxonomy(catalogue.locate_folder("mtalk_bench") / "taxonomy.json")
    assert tuple(SCENES) == taxonomy.scenarios
    assert {name for name, kind in taxonomy.capabilities.items() if kind == "semantic"} == set(CAPABILITIES)
    assert set(ALL) == set(taxonomy.capabilities)
    for name, prompt in ARENA_PROMPTS.items():
        assert taxonomy.capability_of(prompt) == name
