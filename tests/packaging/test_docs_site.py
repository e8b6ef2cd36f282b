"""The pages of docs/ as a site: built without a warning, and nothing in it comes from another host."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

for _name in ("material", "mkdocstrings", "jupytext"):
    pytest.importorskip(_name, reason=f"{_name} is not installed; pip install 'podeval[dev]'")
pytestmark = pytest.mark.long

REPOSITORY = Path(__file__).parents[2]
LOADED = re.compile(
    r'<(?:script|img|iframe|source|audio)[^>]+src="(https?:)?//|<link[^>]+href="(https?:)?//|@import|url\(http'
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # What jieba says while the search cuts Chinese into words.
    said = [
        line
        for line in done.stderr.splitlines()
        if not re.search("[Pp]refix dict|[Ll]oading model|to file cache", line)
    ]
    assert not "".join(said).strip()
    return out


def test_every_page_is_there_and_can_be_reached(site: Path) -> None:
    pages = {path.relative_to(REPOSITORY / "docs").with_suffix(".html") for path in (REPOSITORY / "docs").rglob("*.md")}
    made = {path.relative_to(site) for path in site.rglob("*.html")}
    wanted = {path.with_name("index.html") if path.name == "README.html" else path for path in pages}
    assert wanted <= made
    menu = (site / "index.html").read_text(encoding="utf-8")
    assert not [str(path) for path in wanted if f'href="{path.as_posix()}"' not in menu and path.name != "index.html"]


def test_a_reader_of_the_site_asks_no_other_host(site: Path) -> None:
    for page in (*site.rglob("*.html"), *site.rglob("*.css")):
        found = LOADED.search(page.read_text(encoding="utf-8"))
        assert found is None, f"{page.name}: {found[0][:200] if found else ''}"


def test_links_out_of_the_docs_lead_to_files_of_the_repository(site: Path) -> None:
    for page in site.rglob("*.html"):
        for target in re.findall(
            r'href="https://huggingface.co/spaces/podeval/leaderboard/blob/main/([^"#]+)', page.read_text("utf-8")
        ):
            assert (REPOSITORY / target).exists(), f"{page.name}: {target}"


def test_programs_find_every_page_of_the_list_as_markdown(site: Path) -> None:
    pages = re.findall(r"/docs/([\w/-]+\.md)\)", (site / "llms.txt").read_text(encoding="utf-8"))
    assert {"metrics.md", "hub.md", "decisions/protocols.md"} <= set(pages)
    for page in pages:
        assert (site / page).read_bytes() == (REPOSITORY / "docs" / page).read_bytes()
