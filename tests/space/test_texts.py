"""What pages say: words of the field, the same in both languages, and nothing that only its authors would say."""

import re
from functools import cache
from pathlib import Path

from podeval.text.message_catalogue import read_messages, read_texts

SPACE = Path(__file__).parents[2] / "space"
OF_THE_ENGINE = (
    *(
        "arena/names/",
        "metrics/",
        "arena/questions/",
        "arena/refused/",
        "board/causes/sentences/",
        "board/benchmarks/",
        "board/groups/",
        "method/phrases/",
        "cards/caution/",
        "cards/misread/",
        "cards/limits/",
        "cards/use/",
        "recording_report/advice/",
        "refused/reasons/",
        "refused/sentences/",
        "refused/states/",
    ),
    *("interface/operations/", "interface/notes/"),
    *("report/defect_heard/", "submit/asks/", "submit/helps/", "submit/tracks/"),
)
"""What the engine says in English itself: only other languages have it in their catalogues."""
NAMES = frozenset({"podeval", "Parquet", "English", "Krippendorff's α"})
"""Texts that are names, which Chinese pages say as they are."""
PLACEHOLDER = re.compile(r"\{\w*\}")


@cache
def messages(language: str) -> dict[str, str]:
    """Every text of a language by its id, its page before it."""
    files = sorted((SPACE / "locale" / language / "LC_MESSAGES").glob("*.po"))
    return {f"{file.stem}/{id}": text for file in files for id, text in read_messages(file).items()}


def test_both_languages_say_the_same_things_with_the_same_places_for_values() -> None:
    english, chinese = messages("en"), messages("zh")
    assert len(english) > 1_000
    assert english.keys() - chinese.keys() == set()
    assert {id for id in chinese.keys() - english.keys() if not id.startswith(OF_THE_ENGINE)} == set()
    for id, text in english.items():
        for form in getattr(text, "forms", (text,)):
            assert set(PLACEHOLDER.findall(form)) == set(PLACEHOLDER.findall(chinese[id])), id


def test_no_text_is_without_a_translation() -> None:
    chinese = messages("zh")
    assert {id: text for id, text in messages("en").items() if text and not is_translated(text, chinese[id])} == {}


def is_translated(english: str, translated: str) -> bool:
    """Whether a text is in Chinese, or has nothing to translate: a name, a code or values alone."""
    words = re.sub(r"\{\w*\}|`[^`]*`", " ", english)
    if english in NAMES or not re.search(r"[a-z]{3}", words):
        return bool(translated)
    return re.search(r"[\u4e00-\u9fff]", translated) is not None


def test_what_the_engine_names_has_each_of_its_names_in_chinese() -> None:
    from podeval import benchmarks
    from podeval.submissions.rules import RULES

    submit = read_texts(SPACE / "locale", "zh", ("submit",))["submit"]
    assert submit["asks"].keys() == RULES.keys()
    known = {f"{name}.{track.name}" for name in benchmarks.list_benchmarks() for track in benchmarks.get(name).tracks}
    assert submit["tracks"].keys() == known
    english = read_texts(SPACE / "locale", "en", ("submit",))["submit"]
    assert (english["asks"], english["tracks"]) == ({}, {}), "which the engine says itself"


def test_every_metric_has_its_card_in_chinese() -> None:
    from podeval.metrics import catalogue

    cards = read_texts(SPACE / "locale", "zh", ("cards",))["cards"]
    for part, declared in (
        ("use", "intended_use"),
        ("limits", "limitations"),
        ("caution", "caution"),
        ("misread", "misreading"),
    ):
        assert cards[part].keys() == {one.name for one in catalogue.load_all_metrics() if getattr(one, declared)}, part


def test_a_text_takes_the_form_of_its_number() -> None:
    plots = (read_texts(SPACE / "locale", code, ("board",))["board"]["plot"] for code in ("en", "zh"))
    english, chinese = (words["of_systems"] for words in plots)
    assert [english.format(total) for total in (1, 2)] == ["1 system", "2 systems"]
    assert chinese.format(1) == chinese.format(2).replace("2", "1")


def test_numbers_days_and_spans_are_written_as_the_language_does(board_app: object) -> None:
    from website import write_moment, write_number, write_span

    moment = "2026-11-03T23:28:59+08:00"
    assert [write_moment(moment, code) for code in ("en", "zh")] == [
        "Nov 3, 2026, 15:28 UTC",
        "2026年11月3日 15:28 UTC",
    ]
    assert write_number(1_234_567, "zh") == "1,234,567"
    spans = [write_span(seconds, "en") for seconds in (1, 90, 5_300, 5_500, 400_000)]
    assert spans == ["1 minute", "2 minutes", "88 minutes", "2 hours", "5 days"]
    assert write_span(5_500, "zh") == "2小时"
