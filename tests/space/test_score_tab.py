"""The Score tab: what visitors measure there and when they may; what of Gradio is answered, and what programs call."""

import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import soundfile
from starlette.testclient import TestClient

from podeval.errors import BadInput
from tests.fakes.bounded_memory import bounded_memory
from tests.fakes.sandbox_walls import WALLS, stand_up
from tests.fakes.stated_counts import write_all
from tests.space.submit_fixture import Asking, tab_method

gr = pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")

RATE = 16_000


@pytest.fixture
def tone(tmp_path: Path) -> Path:
    """Six seconds at -20 dBFS in both channels: -20 + 3.01 - 0.691 + 0.691 LUFS at 997 Hz, by BS.1770."""
    seconds = np.arange(6 * 48_000) / 48_000
    wave = 0.1 * np.sin(2 * np.pi * 997 * seconds)
    soundfile.write(tmp_path / "tone.wav", np.stack([wave, wave], axis=1), 48_000, subtype="FLOAT")
    return tmp_path / "tone.wav"


@pytest.fixture(scope="module")
def part(board_app: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The part of the tab for recordings."""
    return part_of(board_app.build(tmp_path_factory.mktemp("part") / "runs"))


def part_of(app: Any, language: str = "en", name: str = "RecordingPart") -> Any:
    return tab_method(app, f"{name}.measure", language)


def measured(part: Any, audio: Path | None, names: list[str], words: str = "", which: str = "own") -> list[Any]:
    return list(part.measure(Asking(""), which, audio and str(audio), words, 0, names))


@pytest.mark.every(2)
@pytest.mark.parametrize("wall", WALLS)
def test_a_recording_is_measured_apart_beside_what_people_reach_and_saved_as_a_report(
    board_app: ModuleType, tone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: str
) -> None:
    stand_up(wall, monkeypatch)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    app = board_app.build(tmp_path / "runs")
    steps = measured(part_of(app), tone, ["loudness", "wer"])
    line, wrong, page = steps[-1]
    assert (line, wrong) == ("", ""), "at the end nothing is being done"
    assert steps[0][0] == "<p>reading the recording …</p>"
    assert 'value="1.000" aria-label="Progress"></progress> writing the report …</p>' in steps[-2][0]
    # Amplitude 0.1 is an RMS of -23.01 dB a channel; two channels add 3.01, and 997 Hz passes with 0.691 - 0.691.
    assert re.search(r"−(19\.9|20\.[01])\d?\sLUFS", page)
    assert "Quiet for a podcast (" in page, "the verdict"
    assert "best −18 – −14" in page
    assert ">poor<" in page, "in a word and not in a colour"
    assert 'title="loudness.integrated: ' in page, "the key is a tooltip"
    assert "<strong>WER</strong>: needs the words" in page, "what was not measured says why"
    assert "<polyline" in page
    assert "loudness@" in page, "the protocol"
    assert "not ranked (Loudness range, Loudness-range score): " in page
    without_tooltips = re.sub(r'title="[^"]*"', "", page.partition("Protocols: ")[0])
    assert not re.search(r"\b(wer|range_score)\b", without_tooltips), "no key but in tooltips"
    so_far = [step[2] for step in steps if isinstance(step[2], str) and "so far" in step[2]]
    assert so_far, "what is not whole says so"
    assert "so far" not in page
    address = re.search(r"/score/reports/[\w-]+\.html", page)
    assert address
    client = TestClient(app, base_url="http://localhost", client=("127.0.0.1", 50_000))
    saved = client.get(address.group())
    assert saved.headers["content-disposition"].startswith("attachment")
    assert "data:audio/mpeg" in saved.text
    assert "tone.wav" in saved.text
    assert client.get(address.group().replace("reports/", "reports/x")).status_code == 404
    assert not list(tmp_path.glob("podeval-try-*/podeval-score-*")), "nothing of it stays"


def test_reports_are_kept_for_an_hour_and_no_more_than_some(board_app: ModuleType) -> None:
    from services import MOST_BYTES, MOST_REPORTS, REPORT_SECONDS, ScoreReports

    now = [0.0]
    reports = ScoreReports(lambda: now[0])
    first = reports.keep(b"first")
    names = [reports.keep(b"x") for _ in range(MOST_REPORTS)]
    assert reports.read(first) is None
    assert reports.read(names[-1]) == b"x"
    assert reports.keep(b"x" * (MOST_BYTES + 1)) == ""
    now[0] = REPORT_SECONDS + 1
    assert reports.read(names[-1]) is None


def test_examples_are_heard_and_measured_with_their_words_and_licence(part: Any, client: TestClient) -> None:
    from pages.score import EXAMPLES

    for name in EXAMPLES:
        sound, rate = soundfile.read(io.BytesIO(client.get(f"/score/examples/{name}.flac").content))
        assert 5 < len(sound) / rate < 40
    part_of_it = client.get("/score/examples/reader.flac", headers={"range": "bytes=4-7"})
    assert (part_of_it.status_code, len(part_of_it.content)) == (206, 4), "a player goes to the time of a defect"
    assert client.get("/score/examples/other.flac").status_code == 404
    _, shown = part.choose(Asking(""), "readers")
    assert "CC BY 4.0" in shown
    assert "Reader 2:" in shown
    _, wrong, page = measured(part, None, ["loudness"], which="faults")[-1]
    assert wrong == ""
    assert "LUFS" in page


def test_what_is_missing_or_too_large_is_a_sentence_in_the_language_of_the_tab(
    part: Any, board_app: ModuleType, tone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import measure_apart

    assert "Choose a metric" in measured(part, tone, [])[-1][1]
    assert "need the words" in measured(part, tone, ["wer"])[-1][1]
    assert "Choose or record something first" in measured(part, None, ["loudness"])[-1][1]
    large = tmp_path / "large.wav"
    with large.open("wb") as file:
        file.truncate(28 * 2**20)
    assert "This file is 28.0\N{NO-BREAK SPACE}MB; the limit here is 20\N{NO-BREAK SPACE}MB" in part.look_at(str(large))
    assert "28.0\N{NO-BREAK SPACE}MB" in measured(part, large, ["loudness"])[-1][1]
    chinese = part_of(board_app.build(tmp_path / "runs"), "zh")
    assert "此文件为 28.0\N{NO-BREAK SPACE}MB" in chinese.look_at(str(large))
    monkeypatch.setattr(measure_apart, "SECONDS", 1)
    assert "录音超过 1 秒" in measured(chinese, tone, ["loudness"])[-1][1]


def test_a_long_recording_and_a_file_that_is_none_are_refused(
    part: Any, tone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import measure_apart

    monkeypatch.setattr(measure_apart, "SECONDS", 1)
    assert "longer than 1 s; choose a part of it" in measured(part, tone, ["loudness"])[-1][1]
    (tmp_path / "<b>words.wav").write_text("no audio")
    wrong = measured(part, tmp_path / "<b>words.wav", ["loudness"])[-1][1]
    assert "&lt;b&gt;words.wav" in wrong
    assert str(tmp_path) not in wrong


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"wall_seconds": 0.1}, "it took longer than 0.1 s, the limit of this board"),
        ({"memory_bytes": 64 * 2**20}, "because of a fault of this board|used more than 64 MiB of memory, the limit"),
    ],
)
def test_measuring_that_takes_too_much_is_ended_with_a_sentence_on_whose_fault_it_is(
    part: Any, tone: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, Any], sentence: str
) -> None:
    import measure_apart

    monkeypatch.setattr(measure_apart, "SCORING", replace(measure_apart.SCORING, **limits))
    _, wrong, _ = measured(part, tone, ["loudness"])[-1]
    assert re.search(sentence, wrong)


def test_who_measures_is_heard_between_two_values(part: Any, tone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from podeval.measuring import isolated

    monkeypatch.setattr(isolated, "HEARTBEAT", 0.1)
    told = measured(part, tone, ["loudness"])
    assert sum(first == second for first, second in pairwise(told)) > 2, "Gradio cancels between two results only"


def test_who_waits_is_told_the_place_and_is_next(part: Any, tone: Path) -> None:
    from measure_apart import MeasuringTurn

    with MeasuringTurn("script"), MeasuringTurn("recording"), MeasuringTurn("recording"):
        third = part.measure(Asking(""), "own", str(tone), "", 0, ["loudness"])
        assert "recordings ahead of yours: 2" in next(third)[0]
        third.close()
    with MeasuringTurn("recording") as next_one:
        assert next_one.wait() == 0, "who left has no place"


def test_a_place_that_nothing_ends_holds_nobody_up_for_ever(
    board_app: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    import measure_apart

    abandoned = measure_apart.MeasuringTurn("script").__enter__()
    with measure_apart.MeasuringTurn("script") as turn:
        assert turn.wait(0.01) == 1, "it may be measuring still"
        monkeypatch.setattr(turn, "_most", 0.0)
        turn.wait(0.01)
        assert turn.wait(0.01) == 0
    abandoned.__exit__()
    with measure_apart.MeasuringTurn("script") as turn:
        assert turn.wait(0.01) == 0, "it ends once"


def test_a_strangers_file_is_decoded_in_a_process_of_its_own_within_bounds(
    board_app: ModuleType, tone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import measure_apart

    from podeval import sandbox

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name, channels, rate in (("many", 9, RATE), ("fast", 1, 400_000)):
        soundfile.write(tmp_path / f"{name}.wav", np.full((RATE, channels), 0.1), rate)
        refused = pytest.raises(BadInput, match=rf"{name}|channels|Hz")
        with refused, measure_apart.open_decoded(tmp_path / f"{name}.wav"):
            pass
    with measure_apart.open_decoded(tone) as copy:
        assert soundfile.info(copy).frames == 6 * 48_000
    assert tone.exists()
    monkeypatch.setattr(
        measure_apart, "DECODING", sandbox.SandboxLimits(wall_seconds=60, memory_bytes=64 * 2**20, processes=64)
    )
    refused = pytest.raises(BadInput, match=r"tone\.wav cannot be decoded here \(.*\); export it again")
    with refused, measure_apart.open_decoded(tone):
        pass
    assert not list(tmp_path.glob("podeval-try-*")), "nothing of it stays"


def test_no_header_of_a_visitors_recording_is_read_in_the_process_of_the_site(
    board_app: ModuleType, tone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import av
    import measure_apart

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the site reads it itself")

    for reader in (av, soundfile):
        monkeypatch.setattr(reader, {av: "open", soundfile: "SoundFile"}[reader], refuse)
    monkeypatch.setattr(soundfile, "info", refuse)
    (tmp_path / "song.m4a").write_bytes(write_all()["samples of one size"])
    with bounded_memory(64 * 2**20):
        refused = pytest.raises(BadInput, match=r"song\.m4a.* its index states 10,000,000")
        with refused, measure_apart.open_decoded(tmp_path / "song.m4a"):
            pass
        with measure_apart.open_decoded(tone) as copy:
            assert copy.is_file()


def test_a_script_is_measured_in_the_readers_language(board_app: ModuleType, tmp_path: Path) -> None:
    app = board_app.build(tmp_path / "runs")
    english, chinese = (part_of(app, language, "ScriptPart") for language in ("en", "zh"))
    *_, (line, wrong, page) = english.measure(Asking(""), "a b a b", ["mattr", "distinct_n"])
    assert (line, wrong) == ("", "")
    assert '<p class="conclusion">' in page
    assert re.search(r'title="mattr\.mattr: .*?data-label="value"><span title="the text is shorter[^>]*>0\.5<', page)
    assert "mattr@" in page
    assert "distinct_n@" in page
    assert "Enter a script first" in next(english.measure(Asking(""), "  ", ["mattr"]))[1]
    *_, (_, _, page) = chinese.measure(Asking("", "zh"), "a b a b", ["info_dens"])
    assert "信息密度" in page
    assert "比特" in page
    assert "请先输入脚本" in next(chinese.measure(Asking(""), "  ", ["mattr"]))[1]


@pytest.mark.parametrize(
    ("local", "said", "may"), [(True, "", True), (False, "", False), (False, "1", True), (True, "0", False)]
)
def test_visitors_measure_where_there_is_nobody_else_or_the_operator_says_so(
    board_app: ModuleType, local: bool, said: str, may: bool
) -> None:
    import gradio_addresses

    assert gradio_addresses.may_measure(local, {"PODEVAL_TRY": said}) is may


@pytest.mark.long
def test_a_board_that_does_not_measure_says_how_to(
    board_app: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODEVAL_TRY", "0")
    app = board_app.build(tmp_path).state.gate.apps["en"].get_blocks()
    texts = [block.value for block in app.blocks.values() if isinstance(block, gr.Markdown) and block.value]
    assert sum("podeval score episode.wav" in text and "does not measure for visitors" in text for text in texts) == 1
    assert not any(isinstance(block, gr.Audio) for block in app.blocks.values())
    assert "score" not in {function.api_name for function in app.fns.values()}


@pytest.fixture(scope="module")
def client(board_app: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    runs = tmp_path_factory.mktemp("try") / "runs"
    return TestClient(board_app.build(runs), base_url="http://localhost", client=("127.0.0.1", 50_000))


def test_the_app_is_answered_under_the_policy_it_needs_and_other_pages_under_the_strict_one(client: TestClient) -> None:
    for tab in ("/", "/leaderboard", "/arena", "/score", "/submit", "/queue"):
        page = client.get(tab)
        assert page.status_code == 200
        assert "'unsafe-eval'" in page.headers["content-security-policy"], tab
    others = ("/docs", "/about", "/method", "/admin", "/nothing/here", "/arena/ratings")
    for other in (*others, "/own/tabs.js", "/gradio_api/info"):
        assert "unsafe" not in client.get(other).headers["content-security-policy"], other
    assert 'href="/score"' in client.get("/method").text


def test_the_tab_of_an_address_is_in_front_in_the_language_of_its_reader(client: TestClient) -> None:

    for address, language, tab in (("/", "en", "leaderboard"), ("/queue", "zh", "submit")):
        page = client.get(address, headers={"accept-language": language}).text
        start = page.index("window.gradio_config = ") + len("window.gradio_config = ")
        config = json.loads(page[start : page.index(";</script>", start)])
        (tabs,) = (part for part in config["components"] if part["props"].get("elem_id") == "tabs")
        assert tabs["props"]["selected"] == tab
        assert f'lang="{language}"' in page
        assert config["root"].endswith("/zh") is (language == "zh")


def uploaded(site: Any, address: str = "127.0.0.1") -> int:
    client = TestClient(site, base_url="http://localhost", client=(address, 50_000))
    return client.post("/gradio_api/upload", files={"files": ("a.wav", b"RIFF")}).status_code


def test_uploads_are_taken_where_visitors_measure_and_only_so_many(
    board_app: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gradio_addresses

    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    monkeypatch.setenv("PODEVAL_TRY", "0")
    assert uploaded(board_app.build(tmp_path / "runs", host="0.0.0.0")) == 403
    monkeypatch.setenv("PODEVAL_TRY", "1")
    site = board_app.build(tmp_path / "runs")
    assert uploaded(site) == 200
    monkeypatch.setattr(gradio_addresses, "MOST_HELD", 3)
    assert uploaded(site) == 503
    assert [uploaded(site) for _ in range(20)][-1] == 429


def test_a_program_that_names_no_metric_gets_those_that_are_quick(address: str, tone: Path) -> None:
    from gradio_client import Client, handle_file

    scores = Client(address, verbose=False).predict(recording_file=handle_file(str(tone)), api_name="/score")
    assert set(scores) == {"loudness", "dnsmos"}
    assert scores["loudness"]["integrated"] == pytest.approx(-20.0, abs=0.1)


def upload(page: Any, path: Path) -> None:
    """Choose a file until the page, whose script may not have come so far, takes it."""
    from playwright.sync_api import TimeoutError

    for _ in range(40):
        with contextlib.suppress(TimeoutError), page.expect_response(lambda r: "/upload?" in r.url, timeout=3_000):
            page.set_input_files("input[type=file]", str(path))
            return
    raise AssertionError("the page takes no file")


@pytest.mark.long
@pytest.mark.browser
def test_a_visitor_measures_a_recording_on_a_phone(
    serving: Any, chromium: Any, tone: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    address = serving(tmp_path_factory.mktemp("phone") / "runs")
    context = chromium.new_context(viewport={"width": 360, "height": 780})
    page = context.new_page()
    page.set_default_timeout(60_000)
    abroad: list[str] = []
    page.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else abroad.append(r.url))
    failed: list[str] = []
    page.on("response", lambda r: failed.append(r.url) if r.status >= 400 else None)
    page.goto(f"{address}score")
    page.wait_for_selector("#score-audio")
    upload(page, tone)
    page.wait_for_function("document.body.innerText.includes('0:06')")
    page.locator("#score-choices button").first.click()
    page.wait_for_selector("#score-recording-metrics input >> visible=true")
    chosen = page.locator("#score-recording-metrics").get_by_role("checkbox")
    assert all(box.is_checked() for box in chosen.all()), "whatever has its inputs is measured"
    for box in chosen.all():
        box.set_checked(False)
    page.get_by_label("Loudness").first.check()
    page.click("#score-measure")
    page.wait_for_selector("#score-values .conclusion")
    page.wait_for_selector("#score-values a[download]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator("nav a[aria-current]").inner_text() == "Score"
    words = tmp_path_factory.mktemp("words") / "words.wav"
    words.write_text("no audio")
    page.get_by_label("Clear").or_(page.get_by_label("Remove")).first.click()
    upload(page, words)
    page.wait_for_function("!!document.querySelector('[aria-label=Clear], [aria-label=Remove]')")
    page.click("#score-measure")
    page.get_by_role("alert").filter(has_text="words.wav").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert not abroad
    assert not failed
    context.close()


def test_measuring_asks_for_a_shared_gpu_where_the_space_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    import measure_apart

    asked = []

    def share(duration: int) -> Callable[..., Any]:
        asked.append(duration)
        return lambda function: lambda *values: ("shared", function(*values))

    monkeypatch.setitem(sys.modules, "spaces", SimpleNamespace(GPU=share))
    assert measure_apart.use_shared_gpu(len)("ab") == ("shared", 2)
    assert asked == [measure_apart.GPU_SECONDS]
    monkeypatch.setitem(sys.modules, "spaces", None)
    assert measure_apart.use_shared_gpu(len) is len
