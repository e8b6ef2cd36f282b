"""Refusals in the reader's language are found by their code, however the engine words them."""

import ast
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from starlette.testclient import TestClient

from podeval.errors import CodedSentence
from podeval.text.message_catalogue import read_texts
from podeval.texts import LONGEST, SENTENCES, parse_sentence, write_sentence

CHECKOUT = Path(__file__).parents[2]
CHINESE = {"accept": "text/html", "accept-language": "zh"}


@pytest.fixture(scope="module")
def texts() -> dict[str, Any]:
    """What Chinese pages say of refusals."""
    content: dict[str, Any] = read_texts(CHECKOUT / "space/locale", "zh", ("refused",))["refused"]
    return content


@cache
def coded_calls() -> dict[str, list[set[str]]]:
    """Every code in the engine and in the site, with the names of the parameters that each place gives."""
    codes: dict[str, list[set[str]]] = {}
    for folder in ("benchmark/podeval", "space"):
        for path in sorted((CHECKOUT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.Call):
                    if getattr(node.func, "id", "") == "write_sentence" and isinstance(node.args[0], ast.Constant):
                        code = str(node.args[0].value)
                        codes.setdefault(code, []).append(places_of(SENTENCES[code]))
                        continue
                    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
                    code = keywords.pop("code", None)
                    if isinstance(code, ast.Constant) and isinstance(code.value, str) and code.value:
                        codes.setdefault(code.value, []).append(names_of(node, keywords))
    return codes


def places_of(template: str) -> set[str]:
    """The names of the places of a sentence."""
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def names_of(call: ast.Call, keywords: dict[str, ast.expr]) -> set[str]:
    """The names of a sentence's parameters: its own keywords, or those of an error's `parameters`."""
    if getattr(call.func, "id", "") == "CodedSentence":
        return set(keywords)
    parameters = keywords.get("parameters")
    return set(ast.literal_eval(ast.Tuple(parameters.keys))) if isinstance(parameters, ast.Dict) else set()


def test_every_translation_is_of_a_code_that_is_raised_and_every_code_is_translated(texts: dict[str, Any]) -> None:
    assert set(texts["sentences"]) == set(coded_calls()) | set(SENTENCES)
    assert len(SENTENCES) > 200


def test_a_translation_says_what_every_place_that_raises_it_gives(texts: dict[str, Any]) -> None:
    for code, places in coded_calls().items():
        names = places_of(texts["sentences"][code])
        assert all(names == given for given in places), f"{code}: {names} are said, {places} are given"


TO_PAGES = (
    *("arena/service.py", "arena/voting.py", "arena/matchmaking.py", "arena/served_battles.py"),
    *(
        "arena/battle_audio.py",
        "listening/sessions.py",
        "listening/listener_pages.py",
        "listening/screening.py",
    ),
    *("submissions/gate.py", "submissions/source_files.py", "submissions/service.py", "submissions/rules.py"),
    *("submissions/queue.py", "submissions/states.py", "submissions/uploads.py", "submissions/recordings_zip.py"),
    "submissions/takedown.py",
    *("submissions/author_kit.py", "leaderboard/compare.py"),
)
"""Modules of the engine whose refusals pages show."""
REFUSALS = ("ArenaRefused", "BadInput", "Refusal", "UnknownSystem", "Unusable", "write_refusal")
OF_OPERATORS = {"the Hub does not know you; run `hf auth login`"}
"""Said on the command line alone."""


def test_nothing_is_refused_towards_a_page_in_words_without_a_code() -> None:
    files = [path for pattern in TO_PAGES for path in sorted((CHECKOUT / "benchmark/podeval").glob(pattern))]
    files += [path for folder in ("pages", "tabs") for path in sorted((CHECKOUT / "space" / folder).glob("*.py"))]
    wrong, seen = [], 0
    for path in files:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if not isinstance(node, ast.Call) or any(keyword.arg == "code" for keyword in node.keywords):
                continue
            if getattr(node.func, "id", getattr(node.func, "attr", "")) not in REFUSALS:
                continue
            seen += 1
            words = [part.value if isinstance(part, ast.Constant) else ast.unparse(part) for part in node.args
                     if isinstance(part, ast.JoinedStr | ast.Constant)]  # fmt: skip
            wrong += [f"{path.name}: {word}" for word in words if " " in str(word) and word not in OF_OPERATORS]
    assert seen > 100
    assert not wrong


def test_a_sentence_that_was_kept_as_text_is_recognised_by_its_words() -> None:
    for code, template in SENTENCES.items():
        sentence = write_sentence(code, **{name: f"<{name}>" for name in places_of(template)})
        match = parse_sentence(str(sentence))
        assert match is not None
        assert (match.code, dict(match.parameters)) == (code, dict(sentence.parameters))
    assert parse_sentence("nobody has said this") is None
    assert parse_sentence("a is gated" + " is gated" * LONGEST) is None, "longer than anything that is said"


def test_a_refusal_that_was_kept_is_said_line_by_line_and_strangers_words_stay(
    board_app: object, texts: dict[str, Any]
) -> None:
    from error_messages import translate_reason

    missing = write_sentence("no-such-repo", kind="model", repo="ann/x")
    kept = f"licence: {write_sentence('card-without-licence', repo='ann/x')}\n"
    kept += f"base: {write_sentence('base-unusable', repo='ann/x', problem=missing)}"
    assert translate_reason(kept, texts) == (
        "licence: ann/x 的卡片没有写明许可证；请在开头加上 `license: …`\n"
        "base: 基础模型 ann/x 无法使用：没有 model 仓库 ann/x，或它是私有的"
    )
    assert translate_reason("s1 is queued, so there is nothing to cancel", texts) == "s1 状态为 等待中，无可取消"
    assert translate_reason("oh: <b>${x}</b>", texts) == "oh: <b>${x}</b>"
    assert translate_reason(kept, {}) == kept, "in English as it is"
    nested = "x" + " is gated" * 60
    assert translate_reason(nested, texts).startswith("x")


def test_rewording_a_sentence_does_not_lose_its_translation(board_app: object, texts: dict[str, Any]) -> None:
    from error_messages import translate

    for code, (names, *_) in coded_calls().items():
        values = {name: f"<{name}>" for name in names}
        said, whole = translate(CodedSentence("Somebody worded this anew.", code=code, **values), texts, "unknown")
        assert whole
        assert said == texts["sentences"][code].format(**values)


def test_what_has_no_code_is_said_by_its_reason_or_as_it_is(board_app: object, texts: dict[str, Any]) -> None:
    from error_messages import translate

    assert translate("nobody has translated this", texts, "foreign") == (texts["reasons"]["foreign"], False)
    assert translate("nobody has translated this", texts, "no such reason") == ("nobody has translated this", True)
    assert translate(CodedSentence("in English", code="nothing-here"), {}) == ("in English", True)


def test_programs_get_the_code_beside_the_sentence(local: TestClient, texts: dict[str, Any]) -> None:
    answer = local.get("/api/v1/board?benchmark=nope").json()
    assert (answer["reason"], answer["code"]) == ("unknown", "no-such-name")
    assert answer["error"].startswith("there is no benchmark 'nope' here; choose from ")
    page = local.get("/api/v1/board?benchmark=nope", headers=CHINESE).text
    assert "此处没有 benchmark &#39;nope&#39;；现有：" in page
    assert local.get("/api/v1/board?limit=none").json()["code"] == "", "it has no code"
