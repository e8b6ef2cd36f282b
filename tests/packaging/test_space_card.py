"""The card of the Space says what finders look for, and what whoever copies it must set."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from podeval.datasets import catalogue
from podeval.measuring.space_files import BOARD_SITE, BOARD_SPACE, THUMBNAIL
from podeval.models.registry import CARDS

REPOSITORY = Path(__file__).parents[2]
SPACE = REPOSITORY / "space"
ME = "somebody"


@pytest.fixture(scope="module")
def card() -> tuple[dict[str, Any], str]:
    _, head, text = (REPOSITORY / "space" / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head), text


def test_finders_of_leaderboards_find_it(card: tuple[dict[str, Any], str]) -> None:
    head, _ = card
    assert head["datasets"] == [f"podeval/{name}" for name in catalogue.NAMES]
    wanted = {"leaderboard", "arena", "mcp-server", "submission:automatic", "test:public", "judge:auto", "judge:humans"}
    assert wanted | {"modality:audio", "eval:generation", "language:english", "language:chinese"} <= set(head["tags"])
    assert head["models"] == sorted({repo.id for model in CARDS if model.profiles for repo in model.hub})
    assert len(head["short_description"]) <= 60, "the Hub takes no longer one"


def test_what_a_copy_must_set_is_what_the_code_reads(card: tuple[dict[str, Any], str]) -> None:
    _, text = card
    table = text.partition("## A copy of your own")[2].partition("\n\nTools")[0]
    names = set(re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE))
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for top in ("space", "benchmark/podeval")
        for path in (REPOSITORY / top).rglob("*.py")
    )
    assert {"PODEVAL_SECRET", "DATABASE_URL", "PODEVAL_BUCKET", "PODEVAL_RUNS"} <= names
    assert not [name for name in names if f'"{name}"' not in code]


def test_cards_of_links_show_a_picture_that_is_in_the_space(card: tuple[dict[str, Any], str]) -> None:
    from PIL import Image

    head, _ = card
    assert head["thumbnail"] == THUMBNAIL
    folder = f"https://huggingface.co/spaces/{BOARD_SPACE}/resolve/main/"
    assert head["thumbnail"].startswith(folder)
    picture = SPACE / head["thumbnail"].removeprefix(folder)
    with Image.open(picture) as image:
        assert (image.format, image.size) == ("PNG", (1200, 630))
    assert BOARD_SITE == "https://podeval-leaderboard.hf.space"


@pytest.mark.long
@pytest.mark.space
def test_a_copy_made_by_the_readme_alone_serves_and_takes_votes(
    card: tuple[dict[str, Any], str], loopback_hub: Any, run_python: Callable[..., str], tmp_path: Path
) -> None:
    pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
    files = {
        str(path.relative_to(SPACE)): path.read_bytes()
        for path in SPACE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    # The real client pushes the Space as docs/releasing.md says, and copies it as the card says.
    push = re.search(
        r"^hf upload podeval/leaderboard .*$", (REPOSITORY / "docs/releasing.md").read_text(), re.MULTILINE
    )
    block = re.search(r"## A copy of your own.*?```bash\n(.*?)```", card[1], re.DOTALL)
    assert push
    assert block
    there = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]), "HOME": str(tmp_path)}
    there |= {"HF_ENDPOINT": loopback_hub.url, "HF_TOKEN": "hf_x", "HF_HUB_DISABLE_TELEMETRY": "1"}
    there |= {"HF_HUB_DISABLE_XET": "1"}
    for commands in (push[0], block[1].replace("YOU", ME)):
        done = subprocess.run(
            ["bash", "-euc", commands], env=there, cwd=REPOSITORY, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert f"{ME}/podeval" in loopback_hub.repos.buckets.buckets
    copy = loopback_hub.repos.repos["spaces", f"{ME}/board"]
    assert copy.at("main")[1] == loopback_hub.repos.repos["spaces", BOARD_SPACE].at("main")[1]
    assert {name: data for name, data in copy.at("main")[1].items() if name != ".gitattributes"} == files
    (volume,) = copy.settings["volumes"]
    assert copy.settings["hardware"] == card[0]["suggested_hardware"]
    assert (volume["type"], volume["source"], volume.get("readOnly")) == ("bucket", f"{ME}/podeval", None)

    # The copy runs as the Hub would run it: its own files, its settings, and the bucket where it is mounted.
    settings = {entry["key"]: entry["value"] for entry in (*copy.settings["secrets"], *copy.settings["variables"])}
    assert set(settings) == {"PODEVAL_SECRET", "PODEVAL_BUCKET", "PODEVAL_RUNS", "DATABASE_URL"}
    mounted, disk = tmp_path / "mounted", tmp_path / "disk"
    mounted.mkdir()
    disk.mkdir()
    for name, content in copy.at("main")[1].items():
        (disk / name).parent.mkdir(parents=True, exist_ok=True)
        (disk / name).write_bytes(content)
    settings = {
        name: value.replace(volume["mountPath"], str(mounted)).replace("/tmp/", f"{disk}/")
        for name, value in settings.items()
    }
    sign_in = {"SPACE_ID": f"{ME}/board", "OAUTH_CLIENT_ID": "of-the-hub", "OAUTH_CLIENT_SECRET": "of-the-hub"}
    program = (
        "import json, os, sys; sys.path.insert(0, '.'); import app; from pathlib import Path\n"
        "from starlette.testclient import TestClient\n"
        "with TestClient(app.build(Path(os.environ['PODEVAL_RUNS']), '0.0.0.0')) as client:\n"
        "    print(json.dumps([client.get('/health').json(), client.get('/method').status_code]))"
    )
    health, status = json.loads(run_python(program, cwd=disk, **settings, **sign_in).splitlines()[-1])
    assert (health["taking"], health["closed"], health["database"], status) == (True, None, "sqlite", 200)
    assert not [path for path in mounted.rglob("*") if ".db" in path.name], "no SQLite lies on a bucket"
    assert (disk / "podeval.db").is_file()
