"""The site as a whole: who may hand something in, what every answer carries, what programs read."""

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pandas as pd
import pytest
from itsdangerous import TimestampSigner
from joserfc.jwk import RSAKey
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from podeval.errors import BadInput
from tests.fakes.loopback_provider import LoopbackProvider

TABS = ("/submit", "/arena")


@pytest.fixture(scope="module")
def running() -> Iterator[LoopbackProvider]:
    """The provider of all tests."""
    with LoopbackProvider() as started:
        yield started


@pytest.fixture
def provider(running: LoopbackProvider) -> LoopbackProvider:
    """The provider, which signs alice in and tells the truth."""
    running.person = {"sub": "5e67bdd6", "preferred_username": "alice"}
    running.claims, running.signing = {}, None
    return running


@contextmanager
def signing_site(board_app: ModuleType, runs: Path, provider: LoopbackProvider) -> Iterator[TestClient]:
    """A site at a public address where people sign in with the provider."""
    with pytest.MonkeyPatch.context() as patch:
        sign_in_by(provider, patch)
        site = board_app.build(runs, "0.0.0.0")
    with TestClient(site) as client:
        yield client


def sign_in_by(provider: LoopbackProvider, patch: pytest.MonkeyPatch) -> None:
    """Say in the environment what a site needs for it."""
    patch.setenv("OAUTH_CLIENT_ID", "podeval")
    patch.setenv("OAUTH_CLIENT_SECRET", "very-secret")
    patch.setenv("OPENID_PROVIDER_URL", provider.url)
    patch.setenv("PODEVAL_ADMINS", f"{provider.url}:0, {provider.url}:5e67bdd6")


@pytest.fixture(scope="module")
def served(
    board_app: ModuleType, tmp_path_factory: pytest.TempPathFactory, running: LoopbackProvider
) -> Iterator[TestClient]:
    with signing_site(board_app, tmp_path_factory.mktemp("signed") / "runs", running) as client:
        yield client


@pytest.fixture
def signed(served: TestClient, provider: LoopbackProvider) -> TestClient:
    """A site where people sign in with the provider, and nobody has."""
    served.cookies.clear()
    return served


def signing_in(client: TestClient, provider: LoopbackProvider, target: str = "/arena") -> Any:
    """Through the provider and back, as a browser goes."""
    import httpx

    out = client.get("/sign-in", params={"next": target}, follow_redirects=False)
    assert out.headers["location"].startswith(f"{provider.url}/oauth/authorize")
    back = httpx.get(out.headers["location"], follow_redirects=False).headers["location"]
    return client.get(back.replace("http://testserver", ""), follow_redirects=False)


def who(client: TestClient) -> str:
    """The page as its reader sees it, whose header names who is signed in."""
    return client.get("/arena/ratings", headers={"accept": "text/html"}).text


def test_somebody_signs_in_with_the_provider_and_out_again(signed: TestClient, provider: LoopbackProvider) -> None:
    assert f"Sign in at {provider.url.removeprefix('http://')}</a>" in who(signed)
    assert "Hugging Face" not in signed.get("/arena", headers={"accept": "text/html"}).text
    done = signing_in(signed, provider, "/arena/ratings")
    assert (done.status_code, done.headers["location"]) == (303, "/arena/ratings")
    assert "alice" in who(signed)
    cookie = signed.cookies["podeval"]
    assert "secret-token" not in cookie
    assert "very-secret" not in cookie
    signed.post("/sign-out")
    assert "alice" not in who(signed)


def test_a_forged_state_or_code_signs_nobody_in(signed: TestClient, provider: LoopbackProvider) -> None:
    signed.get("/sign-in", follow_redirects=False)
    for query in ("code=made-up&state=made-up", "error=access_denied", ""):
        done = signed.get(f"/sign-in/done?{query}", follow_redirects=False)
        assert (done.status_code, done.headers["location"]) == (303, "/?signed-in=no")
    assert "alice" not in who(signed)
    page = signed.get("/?signed-in=no", headers={"accept": "text/html"}).text
    assert '<p class="notice" role="alert">You are not signed in: ' in page
    assert "您尚未登录" in signed.get("/?signed-in=no&lang=zh", headers={"accept": "text/html"}).text
    assert "You are not signed in" not in signed.get("/?lang=en", headers={"accept": "text/html"}).text


@pytest.mark.parametrize(
    "wrong",
    [
        {"nonce": "of another sign-in"},
        {"aud": "another-site"},
        {"iss": "https://another.example"},
        {"exp": 1_000_000_000},
        {"sub": None},
        "another key",
    ],
    ids=str,
)
def test_what_does_not_prove_who_it_is_is_refused_as_that(
    signed: TestClient, provider: LoopbackProvider, wrong: Any
) -> None:
    if wrong == "another key":
        provider.signing = RSAKey.generate_key(2048, {"kid": "one"})
    else:
        provider.claims = wrong
    answer = signing_in(signed, provider)
    assert (answer.status_code, answer.json()["reason"]) == (400, "unproven")
    assert answer.json()["error"].startswith("You are not signed in: the sign-in provider's response does not")
    assert "alice" not in who(signed)
    provider.claims, provider.signing = {}, None
    assert signing_in(signed, provider).status_code == 303, "another try is not spoilt by it"
    assert "alice" in who(signed)


def test_who_signs_people_in_and_does_not_answer_is_told_as_that(board_app: ModuleType, tmp_path: Path) -> None:
    with LoopbackProvider() as leaving, signing_site(board_app, tmp_path / "runs", leaving) as signed:
        out = signed.get("/sign-in", follow_redirects=False)
        state = parse_qs(urlsplit(out.headers["location"]).query)["state"][0]
        leaving.__exit__()
        answer = signed.get(f"/sign-in/done?code=any&state={state}", follow_redirects=False)
    assert (answer.status_code, answer.json()["reason"]) == (503, "sign-in")


def test_a_name_that_anybody_may_choose_makes_no_operator_at_another_provider(
    board_app: ModuleType,
    signed: TestClient,
    provider: LoopbackProvider,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    provider.person = {"sub": "9", "preferred_username": f"{provider.url}:5e67bdd6"}
    assert signing_in(signed, provider).status_code == 303
    assert signed.get("/admin").status_code == 403
    provider.person = {"sub": "5e67bdd6", "preferred_username": "whoever"}
    assert signing_in(signed, provider).status_code == 303
    assert signed.get("/admin").status_code == 200
    sign_in_by(provider, monkeypatch)
    for names in ("boss", f"{provider.url}:5e67bdd6, boss", "hf:5e67bdd6", f"{provider.url}:"):
        monkeypatch.setenv("PODEVAL_ADMINS", names)
        with pytest.raises(BadInput, match=r"people may choose their names at .*: write identities, http://127"):
            board_app.build(tmp_path / "runs", "0.0.0.0")


@pytest.mark.parametrize("content", [[1], {"person": {}}, {"person": [1]}, {"person": {"identity": 1, "name": "x"}}, 7])
def test_a_signed_session_of_odd_content_is_none(board_app: ModuleType, content: Any) -> None:
    signer = TimestampSigner("of the tests")
    from auth import SessionMiddleware, SignIn

    seen: list[Any] = []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        seen.append(SignIn("oidc").person(Request(scope)))
        await PlainTextResponse("read")(scope, receive, send)

    client = TestClient(SessionMiddleware(page, "of the tests", session_cookie="podeval"))
    client.cookies.set("podeval", signer.sign(b64encode(json.dumps(content).encode())).decode())
    assert client.get("/").text == "read"
    assert seen == [None]


def test_nobody_is_sent_elsewhere_after_signing_in(signed: TestClient, provider: LoopbackProvider) -> None:
    for target in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:x"):
        signed.cookies.clear()
        assert signing_in(signed, provider, target).headers["location"] == "/", target


def test_a_cookie_that_was_changed_is_worth_nothing(signed: TestClient, provider: LoopbackProvider) -> None:
    signing_in(signed, provider)
    cookie = signed.cookies["podeval"]
    signed.cookies.clear()
    signed.cookies.set("podeval", ("A" if cookie[0] != "A" else "B") + cookie[1:])
    assert "alice" not in who(signed)


def test_a_public_address_without_sign_in_takes_nothing_and_says_why(board_app: ModuleType, tmp_path: Path) -> None:
    with TestClient(board_app.build(tmp_path / "runs", "0.0.0.0")) as client:
        told = client.post("/arena/battles", json={}, headers={"x-podeval": "1"})
        assert told.status_code == 503
        assert "has no sign-in" in told.json()["error"]
        health = client.get("/health").json()
        assert (health["status"], health["taking"]) == ("ok", False)


def test_every_answer_carries_its_headers(local: TestClient) -> None:
    own, data, tabs = local.get("/arena/ratings"), local.get("/board.json"), local.get("/")
    for answer in (own, data, tabs):
        assert answer.status_code == 200
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
    for strict in (own, data):
        assert "unsafe" not in strict.headers["content-security-policy"]
        assert "<script>" not in strict.text
        assert "style=" not in strict.text


def test_an_address_that_is_not_there_is_no_crash(local: TestClient) -> None:
    assert local.get("/arena/nothing-here").status_code == 404
    page = local.get("/nothing/here", headers={"accept": "text/html"})
    assert "<p>There is nothing at this address; please check the link.</p>" in page.text
    assert 'aria-current="page"' not in page.text, "it is no page of the documents"
    assert 'aria-current="page"' in local.get("/docs").text
    assert local.get("/own/../app.py").status_code == 404


def test_programs_read_the_board_with_intervals_and_protocols(local: TestClient) -> None:
    page = local.get("/api/v1/board", params={"profile": "embedded", "metric": "dnsmos", "slice": ""}).json()
    assert page["total"] == len(page["rows"]) > 0
    row = page["rows"][0]
    assert isinstance(row["protocol"], str)
    assert isinstance(row["protocol_content"], dict)
    assert isinstance(row["reasons"], dict)
    assert local.get("/api/v1/board?limit=100000").status_code == 422
    assert "limit" in local.get("/api/v1/board?limit=100000").json()["error"]
    assert {b["name"] for b in local.get("/api/v1/benchmarks").json()} >= {"real_pod", "lfs_bench"}
    documented = local.get("/api/openapi.json").json()["paths"]
    assert {"/api/v1/board", "/api/v1/items", "/api/v1/votes"} <= set(documented)
    assert not [path for path in documented if path.startswith(("/sign", "/gradio_api"))]
    assert "podeval_board_rows" in local.get("/metrics").text


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("board?benchmark=nope", "there is no benchmark 'nope' here; choose from lfs_bench, "),
        ("board?profile=nope", "there is no profile 'nope' here; choose from embedded, paper, reference"),
        ("board?system=nope", "there is no system 'nope' here; choose from "),
        ("board?metric=nope", "there is no metric 'nope' here; choose from "),
        ("board?slice=nope", "there is no slice 'nope' here; choose from category=Arts, "),
        ("items?system=nope", "there is no system 'nope' here; choose from "),
        ("items?system=piper&metric=nope", "there is no metric 'nope' here; choose from "),
    ],
)
def test_a_name_that_nothing_has_is_told_with_those_there_are(local: TestClient, address: str, said: str) -> None:
    answer = local.get(f"/api/v1/{address}")
    assert answer.status_code == 404
    assert said in answer.json()["error"]


@pytest.mark.parametrize(
    "address", ["board?system=piper&profile=paper", "board?benchmark=podbench", "items?system=piper&benchmark=podbench"]
)
def test_what_there_is_without_numbers_is_an_empty_list(local: TestClient, address: str) -> None:
    answer = local.get(f"/api/v1/{address}")
    assert answer.status_code == 200
    assert answer.json() == {"total": 0, "rows": []}


def test_the_page_for_programs_documents_every_path_under_the_strict_policy(local: TestClient) -> None:
    page = local.get("/api/docs", headers={"accept": "text/html"})
    assert page.status_code == 200
    assert "unsafe" not in page.headers["content-security-policy"]
    assert "<script" not in page.text
    assert "style=" not in page.text
    documented = local.get("/api/openapi.json").json()["paths"]
    assert len(documented) > 20
    assert all(f"<code>{path}</code>" in page.text for path in documented)
    assert "Every result of one system, item by item." in page.text
    assert "/api/openapi.json" in page.text
    assert "以 JSON 形式读取" in local.get("/api/docs?lang=zh").text
    local.cookies.clear()


def test_too_many_requests_are_told_to_wait(local: TestClient) -> None:
    answers = [local.get("/api/v1/votes") for _ in range(25)]
    late = answers[-1]
    assert late.status_code == 429
    assert int(late.headers["retry-after"]) > 0
    assert "try again in" in late.json()["error"]


def test_a_data_frame_of_a_running_site_is_one_line_of_pandas(address: str) -> None:
    query = {"profile": "embedded", "slice": ""}
    first, second = (
        httpx.get(f"{address}api/v1/board", params=query | {"offset": offset, "limit": 7}).json() for offset in (0, 7)
    )
    board = pd.DataFrame(first["rows"] + second["rows"])
    assert len(board) == 14 <= first["total"]
    assert board["value"].notna().any()
    table = pd.read_csv(f"{address}board.csv?board=real_pod/voice&profile=embedded&dimension=all")
    assert set(table["profile"]) == {"embedded"}
    common = board.merge(table, on=["benchmark", "system", "metric", "key", "protocol"], suffixes=("", "_in_table"))
    assert len(common) > 0
    assert common["value"].to_list() == pytest.approx(common["value_in_table"].to_list(), nan_ok=True)


def test_the_method_page_has_rules_papers_figures_and_what_changed(local: TestClient) -> None:
    page = local.get("/method").text
    assert "is ranked only against numbers with the same protocol" in page
    assert "No listening test on this site shares at least 5 outputs" in page
    assert "Piper" in page
    assert "<img src=x" not in page
    # Thin evidence is said first, and stands with what it rests on.
    about_validity = page.partition('<h2 id="validity">')[2]
    assert about_validity.index("The evidence is thin: six systems") < about_validity.index("<table>")
    for words in ("24 keys were compared", "distance from the range", "0.50 – 0.80"):
        assert words in about_validity


def test_listening_tests_of_the_site_stand_first_with_how_thin_they_are(
    local: TestClient, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pages import method

    from podeval.runs.board_tables import ITEMS, read_table
    from podeval.stats.mushra_scores import Mark

    heard = sorted(set(read_table(runs / ITEMS)[["system", "item"]].itertuples(index=False, name=None)))
    marks = [Mark(f"p{n % 3}", item, system, float(n % 5)) for n, (system, item) in enumerate(heard)]
    monkeypatch.setattr(method, "read_marks_by_test", lambda _: {"Sound": marks})
    local.cookies.clear()
    section = local.get("/method").text.partition('<h2 id="validity">')[2].partition("</section>")[0]
    assert section.partition("<p>")[2].startswith("The evidence is thin: Sound was rated for")
    assert "keys were compared" in section.partition("<table>")[0]
    assert '<th scope="col" class="number">SRCC over systems</th>' in section
    assert "listening test on this site shares" not in section
    chinese = local.get("/method?lang=zh").text.partition('<h2 id="validity">')[2]
    assert chinese.partition("<p>")[2].startswith("证据薄弱：Sound")
    local.cookies.clear()


def test_a_name_of_another_provider_owns_nothing_on_the_hub() -> None:
    from auth import Person
    from pages.submit import get_submitter

    assert get_submitter(Person("hf:5e67bdd6", "alice", orgs=("lab",))).owns("lab/model")
    stranger = get_submitter(Person("https://login.example:5e67bdd6", "alice", orgs=("lab",)))
    assert not stranger.owns("alice/model")
    assert not stranger.owns("lab/model")
    assert stranger.name == "alice (login.example)"


def test_words_of_a_page_are_never_methods_of_dictionaries(tmp_path: Path) -> None:
    from auth import SignIn
    from services import Services
    from website import Site

    site = Site(Services(tmp_path, None, None), SignIn("local"))  # type: ignore[arg-type]
    content = "{{ s.items }}, {{ l.copy }}; {% for n, v in d.items() %}{{ n }}{{ v }}{% endfor %}"
    shown = site._templates.from_string(content).render(s={"items": "words"}, l={"copy": "Copy"}, d={"a": 1, "b": 2})
    assert shown == "words, Copy; a1b2"
