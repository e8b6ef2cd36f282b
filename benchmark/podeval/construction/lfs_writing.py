"""Write cases of an LFS-Bench with a language model: a plan, topics, and a case for each order.

The plan says how many cases of each scenario, language and number of speakers are wanted. For what is still missing,
orders are made: a topic that was not used before, and a case on it. After the refinement, another run of this step
replaces the cases that were taken out; new cases are refined like the first (LFS-Bench, appendix A.2 and A.3).
"""

import random
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from pathlib import Path

from pydantic import Field

from podeval.construction.lfs_cases import CODES, Case, make_case
from podeval.construction.lfs_scenarios import BY_NAME, LANGUAGES, SCENARIOS
from podeval.construction.staged_rows import Sifted, StagedRow, WaitingRow, ask_each
from podeval.errors import BadInput
from podeval.judges.answer_model import JudgeAnswer
from podeval.judges.client import JudgeRequest
from podeval.judges.prompt import Prompt
from podeval.judges.rounds import Asked
from podeval.text.language import read_as
from podeval.text.text_file import read_text

SOURCE = "LLM Generation"
LENGTHS = (80, 500)
"""Least and most words of English or characters of Chinese, between which most of the paper's texts lie."""

_SLACK = 0.5
"""Relative deviation of a case's length from the order, either way, beyond which it is asked for again."""

Cell = tuple[str, str, int]
"""Scenario, language, number of speakers."""


class CasePlan(StagedRow):
    """The plan of the cases that are wanted.

    Attributes:
        each: cases for every scenario, language and number of speakers.
        scenarios: scenarios by name.
        languages: english, chinese.
        speakers: numbers of speakers; those that a scenario does not have are skipped.
        lengths: least and most words of English or characters of Chinese.
    """

    id: str = "plan"
    each: int = Field(ge=1)
    scenarios: tuple[str, ...] = tuple(BY_NAME)
    languages: tuple[str, ...] = tuple(LANGUAGES)
    speakers: tuple[int, ...] = (1, 2, 3)
    lengths: tuple[int, int] = LENGTHS

    def cells(self) -> list[Cell]:
        """List the cells that the plan orders (scenario, language, speakers), in the order of the scenarios."""
        templates = [scenario for scenario in SCENARIOS if scenario.name in self.scenarios]
        return [
            (scenario.name, language, speakers)
            for scenario, language in product(templates, self.languages)
            for speakers in scenario.speakers
            if speakers in self.speakers
        ]


class CaseOrder(StagedRow):
    """An order for one case."""

    scenario: str
    language: str
    speakers: int
    length: int
    topic: str

    @property
    def cell(self) -> Cell:
        """The cell that it belongs to."""
        return self.scenario, self.language, self.speakers


class Topics(JudgeAnswer):
    """Topics for cases."""

    topics: list[str]


class WrittenTurn(JudgeAnswer):
    """A turn."""

    speaker: str = Field(description="Speaker1, Speaker2, and so on")
    text: str = Field(description="what is said, in plain words without any markup")


class WrittenCase(JudgeAnswer):
    """A case as a language model writes it."""

    content: list[WrittenTurn] = Field(min_length=1)
    summary: str


def validate_plan(plan: CasePlan) -> CasePlan:
    """Return the plan if it can be carried out.

    Raises:
        BadInput: a scenario, language or length is not possible, or there is nothing to write.
    """
    if unknown := set(plan.scenarios) - set(BY_NAME):
        raise BadInput(f"there is no scenario {sorted(unknown)[0]!r}; choose from {', '.join(BY_NAME)}")
    if unknown := set(plan.languages) - set(LANGUAGES):
        raise BadInput(f"cases are written in {' and '.join(LANGUAGES)}, not in {sorted(unknown)[0]!r}")
    if not 1 <= plan.lengths[0] <= plan.lengths[1]:
        raise BadInput(f"lengths are the least and the most, not {plan.lengths[0]} and {plan.lengths[1]}")
    if not plan.cells():
        raise BadInput("no scenario of the plan has so many speakers; add to --speakers")
    return plan


def count_missing(plan: CasePlan, orders: Sequence[CaseOrder], gone: Collection[str]) -> Counter[Cell]:
    """Count how many more cases of each cell have to be ordered.

    Args:
        plan: the plan.
        orders: all orders made before.
        gone: ids of orders whose case was left out.
    """
    alive = Counter(order.cell for order in orders if order.id not in gone)
    return Counter({cell: plan.each - alive[cell] for cell in plan.cells() if alive[cell] < plan.each})


def place_orders(
    plan: CasePlan,
    before: Sequence[CaseOrder],
    gone: Collection[str],
    judging: Asked,
    *,
    topics: Mapping[str, Sequence[str]] | None = None,
) -> tuple[list[CaseOrder], list[WaitingRow]]:
    """Make new orders for missing cases, each with a topic of its own.

    Args:
        plan: the plan.
        before: orders made already.
        gone: those of them whose case was left out.
        judging: client of the language model that suggests topics.
        topics: topics of one's own by scenario, used before any suggested ones.

    Returns:
        The orders, and rows that wait because no topics were suggested for them.
    """
    # How many speakers each missing case of a scenario and language has.
    lacking = count_missing(plan, before, gone)
    used: dict[tuple[str, str], list[str]] = {}
    for order in before:
        used.setdefault((order.scenario, order.language), []).append(order.topic)
    needs: dict[tuple[str, str], list[int]] = {}
    for (scenario, language, speakers), count in lacking.items():
        needs.setdefault((scenario, language), []).extend([speakers] * count)
    # A topic for each: one's own first, then suggested ones.
    chosen: dict[tuple[str, str], list[str]] = {}
    for kind in needs:
        used_topics = used.get(kind, [])
        own_topics = (topics or {}).get(kind[0], ())
        chosen[kind] = [topic for topic in own_topics if topic not in used_topics][: len(needs[kind])]
    counts = {kind: len(needs[kind]) - len(chosen[kind]) for kind in needs if len(chosen[kind]) < len(needs[kind])}
    waiting = _suggest_topics(counts, chosen, used, judging)
    orders, numbers = list[CaseOrder](), Counter((order.scenario, order.language) for order in before)
    for kind, speakers_of in needs.items():
        for speakers, topic in zip(speakers_of, chosen[kind], strict=False):
            numbers[kind] += 1
            name = f"{kind[0]}-{CODES[kind[1]]}-{numbers[kind]:04d}"
            # Drawn by the order's own name, so that the same plan orders the same lengths.
            length = random.Random(name).randint(*plan.lengths)  # noqa: S311
            orders.append(
                CaseOrder(
                    id=name, scenario=kind[0], language=kind[1], speakers=speakers, length=length, topic=topic.strip()
                )
            )
    return orders, waiting


def _suggest_topics(
    counts: Mapping[tuple[str, str], int],
    chosen: dict[tuple[str, str], list[str]],
    used: Mapping[tuple[str, str], Sequence[str]],
    judging: Asked,
) -> list[WaitingRow]:
    """Have topics suggested, and add them to the chosen ones."""
    places = [StagedRow(id=f"{scenario}/{language}") for scenario, language in counts]

    def request(line: StagedRow) -> JudgeRequest:
        scenario, _, language = line.id.partition("/")
        kind = (scenario, language)
        used_topics = [*used.get(kind, ()), *chosen[kind]]
        return JudgeRequest(
            make_topics_prompt(scenario, language, counts[kind]),
            {"used": "\n".join(used_topics) or "(none)"},
            check=_check_topics(counts[kind], used_topics),
        )

    answered, waiting = ask_each(judging, places, Topics, request)
    for line, answer in answered:
        scenario, _, language = line.id.partition("/")
        chosen[scenario, language] += answer.topics[: counts[scenario, language]]
    return waiting


def write_cases(orders: Sequence[CaseOrder], judging: Asked) -> Sifted[Case]:
    """Have a case written for every order; an order without a case waits."""
    result: Sifted[Case] = Sifted()
    answered, result.waiting = ask_each(judging, orders, WrittenCase, _request_case)
    for order, written in answered:
        turns = [turn.model_dump() for turn in written.content]
        result.kept.append(
            make_case(
                order.id,
                turns,
                theme=order.topic,
                source=SOURCE,
                scene=order.scenario,
                language=order.language,
                order=order.id,
            )
        )
    return result


def _request_case(order: CaseOrder) -> JudgeRequest:
    prompt = make_case_prompt(order.scenario, order.language, order.speakers, order.length)
    return JudgeRequest(prompt, {"topic": order.topic}, zlib.crc32(order.id.encode()) % 100_000, _check_case(order))


def make_topics_prompt(scenario: str, language: str, count: int) -> Prompt:
    """Make the prompt that asks for topics of cases of a scenario."""
    template = BY_NAME[scenario]
    return Prompt(
        name=f"lfs_topics_{scenario}",
        version="1.0",
        system="You plan a collection of texts that speech synthesis is tested with. It must be varied.",
        template=(
            f"Suggest exactly {count} topics for this kind of text: {template.kind}, in {LANGUAGES[language]}.\n"
            "Each topic is one line, concrete enough to write from, about another matter than the others, and free of "
            "living people, of violence, of sex and of party politics. Write them in the language of the text.\n\n"
            "These topics are taken; suggest none that is about the same:\n{used}"
        ),
        answer=Topics,
        source="LFS-Bench appendix A.2, wording of our own",
    )


def make_case_prompt(scenario: str, language: str, speakers: int, length: int) -> Prompt:
    """Make the prompt that asks for a case of a scenario."""
    template = BY_NAME[scenario]
    unit = "Chinese characters" if language == "chinese" else "English words"
    who = "one speaker, in paragraphs of one turn each" if speakers == 1 else f"exactly {speakers} speakers in turns"
    return Prompt(
        name=f"lfs_case_{scenario}",
        version="1.0",
        system=f"You are {template.author}. You write texts that are spoken aloud, and nothing but their words.",
        template=(
            f"Write {template.kind}, in {LANGUAGES[language]}, for {who}, called Speaker1, Speaker2 and so on. About "
            f"{length} {unit} in all.\n\n"
            f"What the text is to be good for: {template.hard}\n"
            "It is spoken by a machine, so every character must be speakable: no headings, lists, markup, emojis, web "
            "addresses, stage directions or names before the words. Private persons have invented names. End where "
            "the matter ends. Then sum it up in one sentence.\n\n"
            "The topic:\n{topic}"
        ),
        answer=WrittenCase,
        source="LFS-Bench figure 5 (the plan of its template), wording of our own",
    )


def _check_topics(count: int, used: Sequence[str]) -> Callable[[Topics], None]:
    used_topics = {topic.strip().casefold() for topic in used}

    def check(answer: Topics) -> None:
        topics = [topic.strip().casefold() for topic in answer.topics]
        if len(topics) < count or not all(topics):
            raise ValueError(f"{count} topics are needed, {len([t for t in topics if t])} came")
        if len(set(topics)) < len(topics) or used_topics & set(topics):
            raise ValueError("a topic is there twice, or is one of those that are taken")

    return check


def _check_case(order: CaseOrder) -> Callable[[WrittenCase], None]:
    def check(answer: WrittenCase) -> None:
        try:
            turns = [turn.model_dump() for turn in answer.content]
            case = make_case(order.id, turns, theme="", source="", scene=order.scenario, language=order.language)
        except BadInput as error:
            raise ValueError(str(error)) from None
        if case.num_speakers != order.speakers:
            raise ValueError(f"{case.num_speakers} speakers speak, {order.speakers} were ordered")
        if read_as(case.text) not in (CODES[order.language], None):
            raise ValueError(f"the text is not in {LANGUAGES[order.language]}")
        if not (1 - _SLACK) * order.length <= case.length <= (1 + _SLACK) * order.length:
            raise ValueError(f"the text has a length of {case.length}, and about {order.length} were ordered")

    return check


def read_topics(path: Path) -> dict[str, list[str]]:
    """Read topics of one's own from lines of a scenario, a tab and a topic.

    Raises:
        BadInput: there is no such file, or a line has another form.
    """
    topics: dict[str, list[str]] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        scenario, tab, topic = line.partition("\t")
        if not line.strip():
            continue
        if not tab or scenario.strip() not in BY_NAME or not topic.strip():
            raise BadInput(f"{path}, line {number}: write a scenario, a tab and a topic; {line[:40]!r} is not that")
        topics.setdefault(scenario.strip(), []).append(topic.strip())
    return topics
