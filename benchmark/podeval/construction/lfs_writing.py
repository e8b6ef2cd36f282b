"""Write cases of an LFS-Bench with a language model: topics, and a case for each order.

A plan says how many cases of each scenario, language and number of speakers are wanted. For the missing ones, orders
are made: a topic that was not used before, and a case on it. After the refinement, another run of this step replaces
the cases that were left out; new cases are refined like the first (LFS-Bench, appendix A.2 and A.3).
"""

import random
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from pydantic import Field

from podeval.construction.lfs_cases import BY_NAME, CODES, LANGUAGES, Case, CaseTurn, make_case
from podeval.construction.orders import Suggestions, suggest
from podeval.construction.workshop import Sifted, StagedRow, WaitingRow, ask_each
from podeval.errors import BadInput
from podeval.judges.answer_model import JudgeAnswer
from podeval.judges.client import JudgeRequest
from podeval.judges.prompt import Prompt
from podeval.judges.rounds import Asked
from podeval.text.language import read_as

SOURCE = "LLM Generation"

_SLACK = 0.5
"""Relative deviation of a case's length from the order, either way, beyond which it is asked for again."""


class CaseOrder(StagedRow):
    """An order for one case."""

    scenario: str
    language: str
    speakers: int
    length: int
    topic: str

    @property
    def kind(self) -> str:
        """Scenario and language, within which no topic comes twice."""
        return f"{self.scenario}/{self.language}"


class WrittenCase(JudgeAnswer):
    """A case as a language model writes it."""

    content: list[CaseTurn] = Field(min_length=1)
    summary: str


def place_orders(
    kinds: Mapping[str, Sequence[int]],
    each: int,
    lengths: tuple[int, int],
    before: Sequence[CaseOrder],
    gone: Collection[str],
    judging: Asked,
) -> tuple[list[CaseOrder], list[WaitingRow]]:
    """Make new orders for missing cases, each with a topic of its own.

    Args:
        kinds: the numbers of speakers that are wanted, by scenario and language.
        each: the number of cases for every kind and number of speakers.
        lengths: least and most words of English or characters of Chinese.
        before: the orders that were made already.
        gone: the ids of those whose case was left out.
        judging: the client of the language model that suggests topics.

    Returns:
        The orders, and rows that wait because no topics were suggested for them.
    """
    alive = Counter((order.kind, order.speakers) for order in before if order.id not in gone)
    missing = {
        kind: [number for number in numbers for _ in range(each - alive[kind, number])]
        for kind, numbers in kinds.items()
    }
    counts = {kind: len(numbers) for kind, numbers in missing.items()}
    used = {kind: [order.topic for order in before if order.kind == kind] for kind in kinds}
    suggested = suggest(judging, counts, used, make_topics_prompt)
    orders = []
    for kind, topics in suggested.kept:
        scenario, _, language = kind.partition("/")
        for index, (number, topic) in enumerate(zip(missing[kind], topics, strict=True), len(used[kind]) + 1):
            name = f"{scenario}-{CODES[language]}-{index:04d}"
            # Drawn by the order's own name, so the same plan orders the same lengths.
            length = random.Random(name).randint(*lengths)  # noqa: S311
            facts = {"scenario": scenario, "language": language, "speakers": number, "length": length}
            orders.append(CaseOrder.model_validate({"id": name, "topic": topic, **facts}))
    return orders, suggested.waiting


def write_cases(orders: Sequence[CaseOrder], judging: Asked) -> Sifted[Case]:
    """Have a case written for every order; an order without a case waits."""

    def request(order: CaseOrder) -> JudgeRequest:
        prompt, seed = make_case_prompt(order), zlib.crc32(order.id.encode()) % 100_000
        return JudgeRequest(prompt, {"topic": order.topic}, seed, _check_case(order))

    return ask_each(judging, orders, request, _make_written_case)


def _make_written_case(order: CaseOrder, written: WrittenCase) -> Case:
    facts = {"theme": order.topic, "source": SOURCE, "scene": order.scenario, "language": order.language}
    return make_case(order.id, written.content, order=order.id, **facts)


def make_topics_prompt(kind: str, count: int) -> Prompt:
    """Make the prompt that asks for topics of a scenario and language."""
    scenario, _, language = kind.partition("/")
    return Prompt(
        name=f"lfs_topics_{scenario}",
        version="2.0",
        system="You plan a collection of texts that speech synthesis is tested with. It must be varied.",
        template=(
            f"Suggest exactly {count} topics for this kind of text: {BY_NAME[scenario].kind}, in {LANGUAGES[language]}."
            "\nEach topic is one line, concrete enough to write from, about another matter than the others, and free "
            "of living people, of violence, of sex and of party politics. Write them in the language of the text.\n\n"
            "These topics are taken; suggest none that is about the same:\n{used}"
        ),
        answer=Suggestions,
        source="LFS-Bench appendix A.2, wording of our own",
    )


def make_case_prompt(order: CaseOrder) -> Prompt:
    """Make the prompt that asks for a case of a scenario."""
    template, number = BY_NAME[order.scenario], order.speakers
    unit = "Chinese characters" if order.language == "chinese" else "English words"
    who = "one speaker, in paragraphs of one turn each" if number == 1 else f"exactly {number} speakers in turns"
    return Prompt(
        name=f"lfs_case_{order.scenario}",
        version="1.0",
        system=f"You are {template.author}. You write texts that are spoken aloud, and nothing but their words.",
        template=(
            f"Write {template.kind}, in {LANGUAGES[order.language]}, for {who}, called Speaker1, Speaker2 and so on. "
            f"About {order.length} {unit} in all.\n\n"
            f"What the text is to be good for: {template.hard}\n"
            "It is spoken by a machine, so every character must be speakable: no headings, lists, markup, emojis, web "
            "addresses, stage directions or names before the words. Private persons have invented names. End where "
            "the matter ends. Then sum it up in one sentence.\n\n"
            "The topic:\n{topic}"
        ),
        answer=WrittenCase,
        source="LFS-Bench figure 5 (the plan of its template), wording of our own",
    )


def _check_case(order: CaseOrder) -> Callable[[WrittenCase], None]:
    def check(answer: WrittenCase) -> None:
        try:
            case = _make_written_case(order, answer)
        except BadInput as error:
            raise ValueError(str(error)) from None
        if case.num_speakers != order.speakers:
            raise ValueError(f"{case.num_speakers} speakers speak, {order.speakers} were ordered")
        if read_as(case.text) not in (CODES[order.language], None):
            raise ValueError(f"the text is not in {LANGUAGES[order.language]}")
        if not (1 - _SLACK) * order.length <= case.length <= (1 + _SLACK) * order.length:
            raise ValueError(f"the text has a length of {case.length}, and about {order.length} were ordered")

    return check
