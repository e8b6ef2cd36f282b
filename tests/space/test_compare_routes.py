"""The pages that compare and report, as programs and browsers ask for them."""

import json
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import httpx
import pytest
from pages.compare import MOST_EACH
from starlette.testclient import TestClient

from podeval.audio.samples import Samples
from podeval.recording import playback
from tests.fakes.loopback_server import serve_app
from tests.fakes.waiting import wait_until
from tests.space.compare_fixture import HOSTILE, filled, own_pages

WHERE = "real_pod/voice/embedded"
PAGE = {"accept": "text/html"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("compare") / "runs")


@pytest.fixture(scope="module")
def client(runs: Path) -> Iterator[TestClient]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PODEVAL_CACHE", str(runs.parent / "cache"))
        with TestClient(own_pages(runs)) as client:
            yield client


def compared(**changed: Any) -> str:
    return "/compare?" + urlencode({"a": "hibari", "b": "piper", "benchmark": WHERE} | changed)


def told(text: str) -> dict[str, Any]:
    """What the page hands its script."""
    start = text.index('id="compare-data">') + len('id="compare-data">')
    found: dict[str, Any] = json.loads(text[start : text.index("</script>", start)])
    return found


def test_values_stand_side_by_side_with_their_paired_difference(client: TestClient) -> None:
    answer = client.get(compared(by="wer.wer"), headers=PAGE)
    assert answer.status_code == 200
    for said in (
        "A − B, paired",
        "no clear difference",
        "Item by item",
        "DNSMOS OVRL ↑ (MOS)",
        "the model clap is not",
    ):
        assert said in answer.text
    assert 'aria-current="true">WER ↓' in answer.text


@pytest.mark.parametrize(
    "address",
    [
        compared(a="nobody"), compared(b="<script>"), compared(benchmark="nowhere"), compared(item="nothing"),
        compared(b="hibari"), "/report/nobody", "/report/real_pod/voice/nobody", "/report/../../etc/passwd",
        "/report/%2e%2e%2fx", "/compare/audio?system=hibari&where=real_pod/voice/embedded&item=none",
        "/compare/peaks?system=nobody&where=real_pod/voice/embedded&item=arts-1",
        "/compare/audio?system=hibari&where=real_pod/voice/embedded&item=arts-1&part=1",
        "/compare/audio?system=hibari&where=real_pod/voice/embedded&item=arts-1&part=-1",
    ],
)  # fmt: skip
def test_what_is_not_there_is_a_page_that_says_so(client: TestClient, address: str) -> None:
    answer = client.get(address, headers=PAGE)
    assert answer.status_code == 404
    assert "<script>" not in answer.text


def test_sound_comes_by_ranges_as_a_copy_with_its_peaks(client: TestClient) -> None:
    side = told(client.get(compared(item="arts-1"), headers=PAGE).text)["sides"][1]
    whole = client.get(side["audio"])
    assert whole.headers["content-type"] == "audio/flac"
    assert whole.content[:4] == b"fLaC"
    part = client.get(side["audio"], headers={"range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, whole.content[100:200])
    drawn = client.get(side["peaks"])
    assert (drawn.headers["content-type"], 'viewBox="0 0 600 2"' in drawn.text) == ("image/svg+xml", True)
    assert [turn["speaker"] for turn in side["turns"]] == ["Host"] * 10


@pytest.mark.long
def test_who_asks_for_many_sounds_at_once_holds_up_nobody(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies take a while to make: here until they are let go."""
    empty = playback.Playback(tmp_path / "copies")
    monkeypatch.setattr(playback.Playback, "default", lambda: empty)
    made, going_on = playback.decode_standard, threading.Event()

    def slowly(stretch: playback.Stretch) -> Samples:
        going_on.wait(90)
        return made(stretch)

    monkeypatch.setattr(playback, "decode_standard", slowly)
    addresses = [
        f"/compare/{kind}?" + urlencode({"system": system, "where": WHERE, "item": item})
        for kind in ("audio", "peaks")
        for item in ("arts-1", "arts-2", "news-1", "news-2", "health-1", "health-2")
        for system in ("hibari", "piper")
    ] * 2
    many = httpx.Client(timeout=180, limits=httpx.Limits(max_connections=None))
    with many, serve_app(own_pages(runs)) as address:
        answers: list[httpx.Response] = []

        def ask(path: str) -> None:
            answers.append(many.get(address + path))

        threads = [threading.Thread(target=ask, args=(path,)) for path in addresses]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(answers) >= len(addresses) - MOST_EACH)
        refused = list(answers)
        began = time.monotonic()
        page = httpx.get(address + "/compare", headers=PAGE, timeout=60)
        took = time.monotonic() - began
        going_on.set()
        for thread in threads:
            thread.join()
    assert (page.status_code, took < 5) == (200, True)
    assert len(refused) == len(addresses) - MOST_EACH
    assert {answer.status_code for answer in refused} == {503}
    assert {answer.headers["retry-after"] for answer in refused} == {"5"}
    assert "try again" in refused[0].json()["error"]
    assert sorted(answer.status_code for answer in answers)[:MOST_EACH] == [200] * MOST_EACH


def test_same_loudness_is_that_of_both_copies(client: TestClient, tmp_path: Path) -> None:
    import soundfile as sf

    from podeval.recording.playback import measure_level

    levels = []
    for side in told(client.get(compared(item="arts-2", level=1), headers=PAGE).text)["sides"]:
        assert dict(parse_qsl(side["audio"].partition("?")[2]))["beside"] in ("hibari", "piper")
        (tmp_path / "copy.flac").write_bytes(client.get(side["audio"]).content)
        levels.append(measure_level(sf.read(tmp_path / "copy.flac", dtype="float32", always_2d=True)[0]).loudness)
    assert levels[0] == pytest.approx(levels[1], abs=0.1)


def test_missing_audio_is_said_and_the_other_side_plays(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache"))
    runs = Path(shutil.copytree(runs, tmp_path / "runs"))
    (runs / "hibari" / "outputs" / "arts-1.flac").unlink()
    (runs / "piper" / "outputs" / "arts-2.json").write_text("{not json")
    (runs / "piper" / "outputs" / "arts-2.flac").unlink()
    (runs / "hibari" / "outputs" / "arts-2.json").write_text('{"item": "arts-2", "failed": "its voice broke"}')
    with TestClient(own_pages(runs)) as client:
        first = client.get(compared(item="arts-1"), headers=PAGE).text
        assert "This output has no audio." in first
        assert (told(first)["heard"], told(first)["sides"][0]["audio"]) == ("b", "")
        second = client.get(compared(item="arts-2"), headers=PAGE).text
        assert "The system failed: its voice broke" in second
        assert "cannot be read" in second
        assert "compare.js" not in second, "nothing to play, nothing to run"
        known = json.loads((runs / "hibari" / "outputs" / "arts-1.json").read_text())
        removed = json.dumps(known | {"audio": None, "audio_removed": "2026-11-22"})
        (runs / "hibari" / "outputs" / "arts-1.json").write_text(removed)
        assert "was deleted on 2026-11-22" in client.get(compared(item="arts-1"), headers=PAGE).text
        assert "该输出没有音频" not in client.get(compared(item="arts-1", lang="zh"), headers=PAGE).text


def test_answers_of_a_dialogue_are_heard_one_by_one(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache"))
    runs = Path(shutil.copytree(runs, tmp_path / "runs"))
    for system in ("hibari", "piper"):
        answers = [{"audio": "arts-1.flac", "words": f"{system} answers"}, {"audio": "arts-2.flac", "words": "again"}]
        (runs / system / "outputs" / "arts-1.json").write_text(
            json.dumps({"item": "x", "answers": answers[: 2 if system == "hibari" else 1]})
        )
    with TestClient(own_pages(runs)) as client:
        first = client.get(compared(item="arts-1"), headers=PAGE).text
        assert "Answer 2" in first
        assert "hibari answers" in first
        assert client.get(told(first)["sides"][1]["audio"]).content[:4] == b"fLaC"
        second = client.get(compared(item="arts-1", part=1), headers=PAGE).text
        assert "There is no such answer." in second
        assert told(second)["sides"][1]["audio"] == ""


def test_an_empty_folder_has_nothing_to_compare(tmp_path: Path) -> None:
    with TestClient(own_pages(tmp_path)) as client:
        assert "nothing to compare" in client.get("/compare", headers=PAGE).text
        assert client.get("/compare?a=x&b=y", headers=PAGE).status_code == 200
        assert "No results yet" in client.get("/report/x", headers=PAGE).text


def test_what_others_wrote_stays_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache"))
    with TestClient(own_pages(filled(tmp_path / "runs", HOSTILE))) as client:
        for address in (compared(item="arts-1"), "/report/hibari"):
            text = client.get(address, headers=PAGE).text
            assert "window.hacked" in text
            for opened in ("<img src=x", "<iframe", "<script>window", "</script><script>", "<b>bold", "<svg onload"):
                assert opened not in text
            assert "{{7*7}}" in text, "no template of ours"


def test_a_system_is_told_with_its_items_scores_reasons_and_slices(client: TestClient) -> None:
    answer = client.get("/system?system=piper&where=real_pod/voice&item=news-2", headers=PAGE)
    assert answer.status_code == 200
    for said in (
        "unscored by the system: needs at least two speakers",
        "Real-Pod episodes",
        "Over time",
        "By Category",
    ):
        assert said in answer.text
    assert told(answer.text)["sides"][0]["turns"][1]["start"] == 1.6
    assert "unsafe" not in answer.headers["content-security-policy"]
    arts = client.get("/system?system=piper&slice=category%3DArts", headers=PAGE).text
    assert "Category: Arts" in arts
    assert "2/2" in arts, "two items of the category"
    for address in ("/system?system=nobody", "/system?system=piper&where=none", "/system?system=piper&item=none"):
        assert client.get(address, headers=PAGE).status_code == 404


def test_a_system_that_a_paper_reports_has_a_page_without_items(client: TestClient) -> None:
    text = client.get("/system?system=podagent", headers=PAGE).text
    assert "as a paper reports it" in text
    assert 'id="deck"' not in text
    assert "compare.js" not in text


def test_a_page_lists_what_went_wrong_with_a_snippet_of_each(client: TestClient) -> None:
    text = client.get("/system?system=piper&where=real_pod/voice&item=arts-1", headers=PAGE).text
    table = text[text.index('<table class="defects">') : text.index("</table>", text.index('<table class="defects">'))]
    for said in (
        "Left out",
        "00:00:02.000",
        "who really owns",
        "low: noticed by",
        "Dropout",
        "0.15\N{NO-BREAK SPACE}s",
        ">high: ",
    ):
        assert said in table, said
    assert table.index("Left out") < table.index("Dropout") < table.index("Wrong voice"), "in order of time"
    assert "#t=1.00,5.50" in table, "a second around what is 2.0 to 4.5"
    sound = table[table.index("/compare/audio?") : table.index("#t=")].replace("&amp;", "&")
    part = client.get(sound, headers={"range": "bytes=0-99"})
    assert (part.status_code, len(part.content)) == (206, 100), "a browser fetches what it plays"
    chinese = client.get("/system?system=piper&where=real_pod/voice&item=arts-1&lang=zh", headers=PAGE).text
    assert "哪里出了问题" in chinese
    assert "说话人错误" in chinese
    client.cookies.clear()


def test_an_item_without_defects_says_so_and_one_that_nobody_listened_to_says_nothing(client: TestClient) -> None:
    assert "nothing is there that should not be" in client.get("/system?system=piper&item=news-1", headers=PAGE).text
    assert 'id="defects"' not in client.get("/system?system=hibari&item=news-1", headers=PAGE).text
