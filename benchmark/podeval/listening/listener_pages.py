"""The pages that one listener sees, and the valid answers to a page.

A page labels its stimuli with letters; only the server knows which system each letter represents. Answers are validated
here, so only requested answers are stored.
"""

import math
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podeval.errors import BadInput
from podeval.listening import questionnaire, screening
from podeval.listening.designs import Design, DesignItem, Stimulus
from podeval.stats.mushra_scores import HIGH, LOW
from podeval.stats.questionnaire_scores import ABOUT, MUSIC, NEUTRAL, SPEAKERS
from podeval.texts import write_sentence

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Page:
    """One page for one listener; `stimuli` are in the order of their letters."""

    id: str
    item: str
    stimuli: tuple[str, ...]

    @property
    def letters(self) -> list[str]:
        """The letters of the stimuli in order; on an ABX page, the last letter is X, which is one of the other
        stimuli.
        """
        repeats = len(set(self.stimuli)) < len(self.stimuli)
        return [*name_letters(len(self.stimuli) - 1), "X"] if repeats else name_letters(len(self.stimuli))

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Page":
        """Read a page from plain data."""
        return cls(document["id"], document["item"], tuple(document["stimuli"]))

    def stimulus(self, letter: str) -> str:
        """Return the system or anchor that a letter represents.

        Raises:
            BadInput: the page has no such letter.
        """
        for candidate, name in zip(self.letters, self.stimuli, strict=True):
            if candidate == letter:
                return name
        raise BadInput(
            write_sentence("page-has-no-recording", page=self.id, side=f"{letter!r}", choices=", ".join(self.letters))
        )


def name_letters(count: int) -> list[str]:
    """Return the letters A, B, … Z, AA, AB, …"""
    return [(_LETTERS[n // 26 - 1] if n >= 26 else "") + _LETTERS[n % 26] for n in range(count)]


def make_pages(design: Design, slot: int, seed: int) -> list[Page]:
    """Make the pages for the listener at place `slot` in the balanced assignment.

    The items, the systems and their order depend on the place; the sides of a pair, the letters of a MUSHRA page and
    the identity of X are drawn with the seed. A headphone check comes first, and questions about the listener come
    last.
    """
    chance = random.Random(f"{design.digest}:{slot}:{seed}")  # noqa: S311 - reproducible by its recorded seed
    pages: list[Page] = []
    if design.headphone_check:
        pages.append(Page(screening.PAGE, "", screening.TRIAL_NAMES))
    last = [Page(ABOUT, "", ())] if design.demographics else []
    chosen = choose_items(slot, len(design.items), design.items_heard)
    if design.kind == "abx":
        return pages + _make_trials(design, chosen, chance) + last
    of_items = [page for n, hearing in chosen for page in _pages(design, design.items[n], n, hearing, chance)]
    if design.each == "all":
        chance.shuffle(of_items)
    return pages + of_items + last


def count_marks(design: Design) -> tuple[int, Counter[str]]:
    """Return the number of pages per listener, and the number of marks for each system if all listeners finish."""
    slots = [[page for page in make_pages(design, slot, 0) if page.item] for slot in range(design.listeners)]
    names = (name for pages in slots for page in pages for name in dict.fromkeys(page.stimuli))
    return len(slots[0]), Counter(name for name in names if name in design.systems)


def _make_trials(design: Design, chosen: list[tuple[int, int]], chance: random.Random) -> list[Page]:
    """Return a listener's ABX pages in random order; X is A as often as it is B, and A is each of the systems equally
    often.
    """
    count = len(chosen) * design.trials
    turns = [(swap, same) for swap in (False, True) for same in (0, 1)]
    arrangements = [turn for _ in range(count // len(turns)) for turn in turns]
    arrangements += chance.sample(turns, count % len(turns))
    chance.shuffle(arrangements)
    pages: list[Page] = []
    for number, hearing in chosen:
        item = design.items[number]
        for trial in range(design.trials):
            pair = design.pairs[choose_alternative(number, hearing * design.trials + trial, len(design.pairs))]
            swap, same = arrangements[len(pages)]
            sides = pair[::-1] if swap else pair
            page = item.id if design.trials == 1 else f"{item.id}/{trial + 1}"
            pages.append(Page(page, item.id, (*sides, sides[same])))
    return pages


def _pages(design: Design, item: DesignItem, number: int, hearing: int, chance: random.Random) -> list[Page]:
    match design.kind:
        case "mushra":
            stimuli = [*design.systems, *(name for name, anchor in ((HIGH, item.high), (LOW, item.low)) if anchor)]
            chance.shuffle(stimuli)
            return [Page(item.id, item.id, tuple(stimuli))]
        case "questionnaire":
            order = build_williams_row(len(design.systems), hearing)
            return [Page(f"{item.id}/{i + 1}", item.id, (design.systems[code],)) for i, code in enumerate(order)]
        case "rubric" | "mos":
            alternatives: list[tuple[str, ...]] = [(system,) for system in design.systems if system in item.stimuli]
        case _:
            alternatives = list(design.pairs)
    if design.each != "all":
        alternatives = [alternatives[choose_alternative(number, hearing, len(alternatives))]]
    sides = [list(each) for each in alternatives]
    for side in sides:
        chance.shuffle(side)
    chance.shuffle(sides)
    # An item's pages are numbered in the listener's order, so a number does not reveal a system.
    names = [item.id] if design.each != "all" else [f"{item.id}/{n}" for n in range(1, len(sides) + 1)]
    return [Page(name, item.id, tuple(shown)) for name, shown in zip(names, sides, strict=True)]


def find_stimulus(design: Design, item: str, name: str) -> Stimulus:
    """Return the stimulus of a system or an anchor for an item."""
    design_item = design.item(item)
    stimulus = {HIGH: design_item.high, LOW: design_item.low}.get(name) or design_item.stimuli.get(name)
    if stimulus is None:
        raise BadInput(write_sentence("item-has-no", item=item, name=name))
    return stimulus


def list_questions(design: Design, item: DesignItem) -> list[questionnaire.Question]:
    """Return the questions that a page asks about each stimulus (or, for a pair, about both stimuli together)."""
    question, better = questionnaire.Question, design.aspect or "Which is better?"
    criteria = [question(f"criterion_{n}", text, ("no", "yes")) for n, text in enumerate(item.criteria, 1)]
    choices = ("A", "no difference", "B") if design.ties else ("A", "B")
    by_kind = {
        "mushra": [question("naturalness", "How natural is it?", questionnaire.BANDS)],
        "questionnaire": list(design.questionnaire),
        "mos": [questionnaire.SCALES[name] for name in design.scales],
        "rubric": [*criteria, question("rationale", "Why did you decide this way?")],
        "preference": [question("preference", better, questionnaire.PREFERENCE)],
        "abx": [question("abx", "Which of the two is X?", questionnaire.SAME)],
        "text_preference": [question("preference", better, choices)],
    }
    return by_kind[design.kind]


@dataclass(frozen=True)
class PageAnswer:
    """One validated answer: a number on a scale, or words; `stimulus` is the system's name (for a pair, of the first
    system).

    The answer to an ABX page is 1 (correct) or 0 (wrong), and its stimulus is the system that X represents; the words
    name the two sides, `A | B`.
    """

    stimulus: str
    question: str
    value: float | None
    words: str = ""


def validate_answer(design: Design, page: Page, answer: Mapping[str, Any]) -> list[PageAnswer]:
    """Validate a listener's answer to a page, and return its parts.

    Args:
        design: the design of the test.
        page: the page that was shown.
        answer: the answer. mushra: `{letter: 0..100}`. mos: `{scale: 1..5}`. preference: `{"preference": -2..2}`;
            text_preference: -1, 0, 1. abx: `{"abx": -1}` (X is A) or 1. questionnaire: `{question: {"mark": …,
            "reason": …}}`. rubric: `{criterion_1: 0 or 1, …, "rationale": …}`.

    Raises:
        BadInput: a part is missing, unknown, out of range or without the required reason.
    """
    if not isinstance(answer, Mapping):
        raise BadInput(write_sentence("answer-form", page=page.id))
    if page.id == ABOUT:
        return _read_questionnaire([question.asked for question in design.demographics], page, answer)
    match design.kind:
        case "mushra":
            allowed = page.letters
            _require_exactly(page, answer, allowed)
            return [
                PageAnswer(page.stimulus(letter), "naturalness", _read_number(page, letter, answer[letter], 0, 100))
                for letter in allowed
            ]
        case "mos":
            _require_exactly(page, answer, design.scales)
            return [
                PageAnswer(page.stimuli[0], scale, _read_number(page, scale, answer[scale], 1, 5, whole=True))
                for scale in design.scales
            ]
        case "rubric":
            return _read_rubric(design, page, answer)
        case "questionnaire":
            return _read_questionnaire(design.questionnaire, page, answer)
        case "abx":
            _require_exactly(page, answer, ("abx",))
            side = _read_number(page, "abx", answer["abx"], -1, 1, whole=True)
            if not side:
                raise BadInput(write_sentence("abx-decision", page=page.id))
            *sides, same = page.stimuli
            return [PageAnswer(same, "abx", float(sides[side > 0] == same), " | ".join(sides))]
        case _:
            _require_exactly(page, answer, ("preference",))
            most = 2 if design.kind == "preference" else 1
            value = _read_number(page, "preference", answer["preference"], -most, most, whole=True)
            if not design.ties and not value:
                raise BadInput(write_sentence("no-tie-here", page=page.id))
            return [PageAnswer(page.stimuli[0], "preference", value, page.stimuli[1])]


def clean_words(text: Any) -> str:
    """Normalise a listener's text for storage: single spaces, no control characters, at most 2,000 characters.

    Raises:
        BadInput: the value is not a string.
    """
    if not isinstance(text, str):
        raise BadInput(write_sentence("reason-form", kind=type(text).__name__))
    plain = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in text[: 8 * questionnaire.MOST_WORDS])
    return re.sub(r"\s+", " ", plain).strip()[: questionnaire.MOST_WORDS]


def _read_rubric(design: Design, page: Page, answer: Mapping[str, Any]) -> list[PageAnswer]:
    criteria = [f"criterion_{n}" for n in range(1, len(design.item(page.item).criteria) + 1)]
    _require_exactly(page, answer, [*criteria, "rationale"])
    system = page.stimuli[0]
    answers = [PageAnswer(system, name, _read_number(page, name, answer[name], 0, 1, whole=True)) for name in criteria]
    rationale = clean_words(answer["rationale"])
    if not rationale:
        raise BadInput(write_sentence("page-needs-reason", page=page.id))
    return [*answers, PageAnswer(system, "rationale", None, rationale)]


def _read_questionnaire(
    asked_questions: Sequence[questionnaire.Question], page: Page, answer: Mapping[str, Any]
) -> list[PageAnswer]:
    needed = [question.name for question in asked_questions if not question.optional]
    _require_exactly(page, answer, needed, [question.name for question in asked_questions if question.optional])
    stimulus = page.stimuli[0] if page.stimuli else ""
    answers = []
    for question in asked_questions:
        reply = answer.get(question.name)
        if reply is None:
            continue
        # Read a string on its own as the reason, and any other value on its own as the mark.
        if not isinstance(reply, Mapping):
            reply = {"reason": reply} if isinstance(reply, str) else {"mark": reply}
        if question.optional:
            if why := clean_words(reply.get("reason", "")):
                answers.append(PageAnswer(stimulus, question.name, None, why))
            continue
        # Require the mark, and the reason if the question asks for one.
        value = _read_number(page, question.name, reply.get("mark"), 1, len(question.labels) or 50, whole=True)
        reason = clean_words(reply.get("reason", ""))
        if question.reason and not reason:
            raise BadInput(write_sentence("reason-for-mark", page=page.id, name=question.name, value=f"{value:g}"))
        answers.append(PageAnswer(stimulus, question.name, value, reason))
    return answers


def _require_exactly(page: Page, answer: Mapping[str, Any], needed: Any, optional: Any = ()) -> None:
    missing = [name for name in needed if name not in answer]
    if missing:
        raise BadInput(write_sentence("page-asks-for", page=page.id, names=", ".join(missing)))
    if unknown := [str(name)[:40] for name in answer if name not in (*needed, *optional)]:
        raise BadInput(write_sentence("page-does-not-ask-for", page=page.id, names=", ".join(unknown[:5])))


def _read_number(page: Page, name: str, value: Any, low: int, high: int, *, whole: bool = False) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    if not good or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        raise BadInput(
            write_sentence(
                "value-out-of-range",
                page=page.id,
                name=name,
                kind=kind,
                low=low,
                high=high,
                value=f"{str(value)[:40]!r}",
            )
        )
    return float(value)


def find_attention_failures(design: Design, page: Page, answers: list[PageAnswer]) -> list[str]:
    """Return the attention checks that a questionnaire answer fails; they are recorded but not shown to listeners."""
    if design.kind != "questionnaire" or page.id == ABOUT:
        return []
    clip = find_stimulus(design, page.item, page.stimuli[0])
    marks = {answer.question: answer.value for answer in answers}
    failures = []
    if clip.speakers is not None and (count := marks.get(SPEAKERS)) not in (None, clip.speakers):
        failures.append(f"heard {count:g} speakers instead of {clip.speakers}")
    if clip.music is False and (mark := marks.get(MUSIC)) not in (None, NEUTRAL):
        failures.append(f"marked music {mark:g}, but there is none")
    return failures


def build_williams_row(size: int, row: int) -> list[int]:
    """Return one row of a Latin square in which each element follows every other equally often (Williams 1949).

    Over `size` rows, every element is in every position once; over `size` rows (2 * `size` if `size` is odd), every
    element follows every other equally often.

    Args:
        size: number of elements.
        row: any number; rows repeat after 2 * `size`.
    """
    row %= 2 * size if size % 2 else size
    zigzag = [position // 2 if position % 2 == 0 else size - 1 - position // 2 for position in range(size)]
    shifted = [(entry + row) % size for entry in zigzag]
    return shifted[::-1] if row >= size else shifted


def choose_items(slot: int, items: int, each: int) -> list[tuple[int, int]]:
    """Choose the items for one listener in playing order, each with the number of listeners who have already had the
    item.

    The items form a ring, in which each listener starts where the previous listener stopped, so the play counts of any
    two items differ by at most one. Listeners with the same items hear them in successive orders of a Latin square.

    Args:
        slot: the listener's place in the assignment, from 0.
        items: number of items.
        each: number of items per listener.
    """
    each = min(each, items)
    chosen = [(position % items, position // items) for position in range(slot * each, (slot + 1) * each)]
    same_items_after = items // math.gcd(items, each)
    return [chosen[number] for number in build_williams_row(each, slot // same_items_after)]


def choose_alternative(item: int, hearing: int, alternatives: int) -> int:
    """Choose one of several alternatives (systems, pairs of systems) for the n-th play of an item.

    Successive plays of an item cycle through all alternatives, and so do successive items of one listener.
    """
    return (item + hearing) % alternatives
