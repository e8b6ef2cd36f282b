"""A listener goes through tests in a real browser: reload, a killed program, hostile texts, keys only, a phone."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from podeval.listening import Listening, session_results
from podeval.listening.screening import TRIAL_NAMES
from podeval.store.database import Database
from tests.fakes.loopback_server import serve_app
from tests.space.accessibility import looks, picture, violations
from tests.space.arena_fixture import HOSTILE, Site, quick
from tests.space.compare_fixture import own_pages
from tests.space.listening_fixture import fill, saved

pytestmark = pytest.mark.browser
WIDTHS = (360, 768, 1280)
HACKED = "() => window.hacked ?? null"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, warm_python: Any) -> Iterator[Site]:
    pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
    here = Site(tmp_path_factory.mktemp("listening"), warm_python)
    fill(here.database, here.runs)
    here.start()
    yield here
    here.stop()


@pytest.fixture
def context(chromium: Any) -> Iterator[Any]:
    made = chromium.new_context(viewport={"width": 360, "height": 780}, color_scheme="light")
    made.set_default_timeout(120_000)
    yield made
    made.close()


def shot(page: Any, name: str, *, widths: tuple[int, ...] = WIDTHS) -> None:
    """Nothing is wrong with the page at any of its widths, light and dark; a picture of each, if they are wanted."""
    for width, scheme in looks(*widths):
        page.set_viewport_size({"width": width, "height": 780})
        page.emulate_media(color_scheme=scheme)
        picture(page, f"listening-{name}-{width}-{scheme}")
        assert violations(page) == [], (name, width, scheme)
    page.set_viewport_size({"width": 360, "height": 780})
    page.emulate_media(color_scheme="light")


def watched(page: Any) -> list[str]:
    """Errors of scripts and requests to other hosts."""
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(("http://127.0.0.1", "blob:")) else wrong.append(r.url))
    page.on("console", lambda m: wrong.append(m.text) if "Content Security Policy" in m.text else None)
    return wrong


def state(page: Any, name: str) -> None:
    page.wait_for_selector(f"#listening[data-state={name}]")


def title(page: Any, start: str) -> None:
    page.wait_for_function("(start) => document.getElementById('page-title').textContent.startsWith(start)", arg=start)


def begin(page: Any) -> None:
    """By keyboard: agree, read, go on."""
    state(page, "consent")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    state(page, "intro")
    page.locator("#to-pages").press("Enter")
    state(page, "page")


def hear(page: Any, key: str, name: str, share: int, *, at_once: bool = False) -> None:
    """Play a recording by its key until so much of it was heard; again from its beginning where it ended before."""
    page.locator("#page-title").focus()
    enough = """([name, share]) => {
      const time = document.querySelector(`article[aria-label="${name}"] .share`).textContent;
      return Number(time.match(/(\\d+)\\s%/)[1]) >= share;
    }"""
    over = "() => !document.querySelector('article.playing')"
    if not at_once:
        page.wait_for_function(over)
    for _ in range(60):
        # A key does nothing to what plays already.
        page.keyboard.press(key)
        try:
            page.wait_for_function(f"(asked) => ({enough})(asked) || ({over})()", arg=[name, share], timeout=10_000)
        except Exception:
            # What goes on just before its end may neither play nor end: pause, and go on.
            page.keyboard.press("Space")
        if page.evaluate(enough, [name, share]):
            return
    raise AssertionError(f"{name} was not heard to {share} %")


@pytest.mark.long
def test_a_whole_mushra_test_with_a_reload_and_a_killed_program(site: Site, context: Any) -> None:
    page = context.new_page()
    wrong = watched(page)
    link = f"{site.address}/listen/mushra?PROLIFIC_PID=5f00aa&STUDY_ID=s1&SESSION_ID=x1"
    page.goto(link)
    state(page, "consent")
    shot(page, "consent", widths=(360,))
    begin(page)
    assert [card.get_attribute("aria-label") for card in page.locator("article.track").all()] == ["Reference", *"ABCD"]
    page.click("#next")
    assert "Reference, A, B, C, D" in page.inner_text("#problem")
    hear(page, "r", "Reference", 10)
    hear(page, "a", "A", 20, at_once=True)
    hear(page, "b", "B", 40)
    assert page.locator("article.playing").count() <= 1
    marks = {"A": 72, "B": 31, "C": 50, "D": 5}
    for letter in ("A", "B"):
        page.locator(f'article[aria-label="{letter}"] .mark input').fill(str(marks[letter]))
    page.locator('article[aria-label="C"] .mark input').press("Enter")
    assert page.get_attribute('article[aria-label="C"] .mark input', "aria-valuetext") == "50, Fair"
    context.add_init_script(quick(4))
    page.reload()
    state(page, "page")
    sliders = page.locator(".mark input")
    assert [slider.get_attribute("aria-valuetext") for slider in sliders.all()] == [
        *("72, Good", "31, Poor", "50, Fair", "not marked yet")
    ], "what was not sent yet is still there"
    for key, name in (("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")):
        hear(page, key, name, 90)
    page.click("#next")
    assert page.evaluate(
        "[document.activeElement.ariaLabel.slice(0, 9), document.activeElement.validationMessage]"
    ) == [
        "Mark of D",
        "not marked yet",
    ]
    last = page.locator('article[aria-label="D"] .mark input')
    last.fill("6")
    last.press("ArrowLeft")
    assert last.get_attribute("aria-valuetext") == "5, Bad"
    shot(page, "mushra")
    page.click("#next")
    title(page, "Page 2 of 2")
    for key, name in (("r", "Reference"), ("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")):
        hear(page, key, name, 90)
    for slider in sliders.all():
        slider.fill("40")
    site.kill()
    page.click("#next")
    page.wait_for_function("() => document.getElementById('saving').textContent.startsWith('No connection')")
    site.start()
    state(page, "complete")
    page.reload()
    state(page, "complete")
    again = context.browser.new_context().new_page()
    again.goto(link)
    state(again, "complete")
    again.click("#reconsider")
    state(again, "page")
    assert [s.get_attribute("aria-valuetext") for s in again.locator(".mark input").all()] == ["40, Fair"] * 4
    again.context.close()
    page.click("#finish")
    state(page, "done")
    code = page.inner_text("#code")
    shot(page, "done", widths=(360,))
    page.goto(f"{link}&lang=zh")
    state(page, "done")
    assert page.inner_text("#code") == code
    assert page.inner_text("#done-title") == "谢谢您"
    assert (page.evaluate(HACKED), wrong) == (None, [])
    session = saved(site.database, "mushra")[0]
    assert session.completion_code == code
    with Database(site.database) as database:
        found = {(m.page, m.stimulus): m.value for m in session_results.read_session_marks(database, "mushra")}
    given = {name: marks[letter] for letter, name in zip("ABCD", session.pages[0]["stimuli"], strict=True)}
    assert {name: found[session.pages[0]["item"], name] for name in given} == given


@pytest.mark.long
def test_listeners_return_to_their_panel_by_themselves_unless_they_stay(context: Any, tmp_path: Path) -> None:
    fill(tmp_path / "podeval.db", tmp_path)
    with Database(tmp_path / "podeval.db") as database:
        begun = Listening(database).start("abx", "prolific:home").session
        Listening(database).save(begun, 0, dict.fromkeys(TRIAL_NAMES, 1), seconds=60)
    context.route("https://app.prolific.com/**", lambda route: route.fulfill(body="the panel"))
    page = context.new_page()
    with serve_app(own_pages(tmp_path, "listening")) as address:
        page.goto(f"{address}/listen/abx?PROLIFIC_PID=home")
        assert "In 5 seconds" in page.inner_text("#countdown")
        page.click("#stay")
        page.get_by_text("return to the site that sent you here at any time").wait_for()
        context.new_page().goto(page.url)
        context.wait_for_event("response", lambda response: response.url.endswith("cc=C9Z8Y7X6"))
    assert page.locator("#stay").is_hidden()


@pytest.mark.long
def test_questions_of_every_kind_are_answered_on_a_phone_and_texts_stay_texts(site: Site, context: Any) -> None:
    context.add_init_script(quick(4))
    page = context.new_page()
    wrong = watched(page)
    _questionnaire(page, site)
    _rubric(page, site)
    page.goto(f"{site.address}/listen/mos?pid=one")
    begin(page)
    hear(page, "a", "Recording", 1)
    for fieldset in page.locator("fieldset.asked").all():
        fieldset.locator("input").nth(3).check()
    _finish(page)
    page.goto(f"{site.address}/listen/preference?pid=one")
    begin(page)
    shot(page, "preference", widths=(360,))
    for key in "AB":
        hear(page, key, key, 1)
    page.get_by_label("B is much better").check()
    _finish(page)
    page.goto(f"{site.address}/listen/text_preference?pid=one")
    begin(page)
    assert HOSTILE in page.inner_text("#answers")
    page.get_by_label("no difference").check()
    page.click("#next")
    title(page, "Page 2")
    page.click("#previous")
    title(page, "Page 1")
    assert page.get_by_label("no difference").is_checked(), "a saved page comes back with its answer"
    page.click("#next")
    title(page, "Page 2")
    page.get_by_label("A", exact=True).check()
    _finish(page)
    assert (page.evaluate(HACKED), wrong) == (None, [])
    with Database(site.database) as database:
        assert {m.value for m in session_results.read_session_marks(database, "mos")} == {4}
        assert [m.value for m in session_results.read_session_marks(database, "preference")] == [2]
        assert sorted(m.value for m in session_results.read_session_marks(database, "text_preference")) == [-1, 0]
        answers, _ = session_results.read_session_answers(database, "questionnaire")
        assert {answer.reason for answer in answers} >= {HOSTILE}
        assert [m.comment for m in session_results.read_session_marks(database, "rubric")] == [HOSTILE, HOSTILE]
    _operator(page, site)
    assert (page.evaluate(HACKED), wrong) == (None, [])


def _questionnaire(page: Any, site: Site) -> None:
    page.goto(f"{site.address}/listen/questionnaire?pid=one")
    begin(page)
    shot(page, "questionnaire")
    for number in (1, 2):
        page.wait_for_function(
            f"() => document.getElementById('page-title').textContent.startsWith('Page {number} of 2')"
        )
        hear(page, "a", "Recording", 1)
        page.get_by_label("A whole number").fill("2" if number == 1 else "1")
        for fieldset in page.locator("fieldset.asked:has(input[type=radio])").all():
            fieldset.locator("input[type=radio]").nth(2).check()
        page.click("#next")
        assert page.evaluate("[document.activeElement.tagName, document.activeElement.validity.valueMissing]") == [
            "TEXTAREA",
            True,
        ]
        for fieldset in page.locator("fieldset.asked:has(input[type=radio])").all():
            fieldset.locator("textarea").fill(HOSTILE)
        if number == 2:
            _finish(page)
        else:
            page.click("#next")


def _rubric(page: Any, site: Site) -> None:
    page.goto(f"{site.address}/listen/rubric?pid=one")
    begin(page)
    assert HOSTILE in page.inner_text("#answers")
    hear(page, "a", "Recording", 50)
    for fieldset, name in zip(page.locator("fieldset.asked").all(), ("Met", "Not met"), strict=False):
        fieldset.get_by_label(name, exact=True).check()
    page.click("#next")
    assert page.evaluate("document.activeElement.labels[0].innerText.trim()").startswith("In your own words")
    page.get_by_label("In your own words").fill(HOSTILE)
    shot(page, "rubric", widths=(360,))
    _finish(page)


def _finish(page: Any) -> None:
    page.click("#next")
    state(page, "complete")
    page.click("#finish")
    state(page, "done")


def _operator(page: Any, site: Site) -> None:
    """Results as an operator sees them: tables, who is left out and why."""
    page.goto(f"{site.address}/listening")
    assert page.locator("#tests tbody tr").count() == 8
    shot(page, "tests", widths=(360,))
    page.goto(f"{site.address}/listening/questionnaire")
    assert "heard 2 speakers instead of 1" in page.inner_text("#attention")
    page.get_by_label("Why?").fill(f"test {HOSTILE}")
    page.get_by_role("button", name="Leave out").click()
    page.get_by_role("button", name="Take back").wait_for()
    assert HOSTILE in page.inner_text("#sessions")
    page.goto(f"{site.address}/listening/panel")
    assert page.locator("#screening tbody tr", has_text="left out").count() == 1, "who marked all alike"
    assert page.locator("#results tbody tr").count() == 4
    assert "完成的听众：3；" in page.request.get(f"{page.url}?lang=zh").text()
    assert "· 3" in page.locator("#results tbody tr").first.inner_text(), "without screening all three count"
    table = pd.read_csv(io.StringIO(page.request.get(f"{site.address}/listening/panel/results.csv").text()))
    assert {"mean", "best", "unscreened_mean", "unscreened_best"} <= set(table.columns)
    assert page.locator("figure.paper svg").count() == 3, "a plot for each listener"
    shot(page, "results")
