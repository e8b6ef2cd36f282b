"""What visitors send to the Score tab: bounded while it comes, refused in our words, and recorded by a microphone."""

import os
import socket
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import soundfile
from starlette.testclient import TestClient

from tests.fakes.waiting import wait_until

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")


@pytest.fixture
def tone(tmp_path: Path) -> Path:
    """Six seconds."""
    soundfile.write(tmp_path / "tone.wav", 0.1 * np.sin(np.arange(6 * 16_000) / 20), 16_000)
    return tmp_path / "tone.wav"


@pytest.fixture
def client(board_app: ModuleType, tmp_path: Path) -> TestClient:
    return TestClient(board_app.build(tmp_path / "runs"), base_url="http://localhost", client=("127.0.0.1", 50_000))


def send_by_hand(address: str, head: str, body: bytes = b"", *, breaks_off: bool = False) -> bytes:
    """What the server answers to an upload of which every byte is ours; nothing where it is broken off."""
    host, port = urlsplit(address).netloc.split(":")
    kind = "Content-Type: multipart/form-data; boundary=x\r\n"
    request = f"POST /gradio_api/upload HTTP/1.1\r\nHost: {host}\r\n{kind}{head}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(request.encode() + body)
        if breaks_off:
            return b""
        return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.long
def test_uploads_are_bounded_while_they_come_and_what_breaks_off_does_not_stay_on_the_disk(
    serving: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gradio_addresses
    import site_app

    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "held"))
    monkeypatch.setattr(site_app, "find_recordings_sender", lambda site, request: "")
    address = serving(tmp_path / "runs")
    held = tmp_path / "held"
    most = gradio_addresses.LARGEST_UPLOAD
    part = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.wav"\r\n\r\n'

    def files() -> list[Path]:
        return [path for path in held.rglob("*") if path.is_file()]

    assert b" 413 " in send_by_hand(address, f"Content-Length: {most + 1}"), "refused before a byte of it is sent"
    assert b" 413 " in send_by_hand(address, "Transfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n")
    assert b" 413 " in send_by_hand(address, "Content-Length: 99999999999999999999")
    assert files() == []
    whole = part + b"sound\r\n--x--\r\n"
    assert b" 200 " in send_by_hand(address, f"Content-Length: {len(whole)}", whole + b"y" * 100_000)
    assert [path.stat().st_size for path in files()] == [5], "what comes after the length is not kept"

    send_by_hand(address, f"Content-Length: {most}", part + b"z" * 2**20, breaks_off=True)
    wait_until(lambda: len(files()) >= 2)
    (left,) = (path for path in files() if path.parent == held)
    os.utime(left, (0, 0))
    monkeypatch.setattr(gradio_addresses, "MOST_HELD", 1_000)
    assert b" 200 " in send_by_hand(address, f"Content-Length: {len(whole)}", whole), "its room is free again"
    assert not left.exists()
    monkeypatch.setattr(gradio_addresses, "LEAST_FREE", 2**60)
    assert b" 503 " in send_by_hand(address, f"Content-Length: {len(whole)}", whole), "the disk keeps room"


def test_a_box_gets_a_copy_of_its_own_of_what_is_compiled_and_none_while_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from podeval.measuring import isolated

    begun: list[str] = []
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(isolated, "begin_compiling", lambda: begun.append("begun"))
    box, other = tmp_path / "box", tmp_path / "other"
    for folder in (box, other):
        folder.mkdir()
    assert isolated.copy_compiled(box) == {}
    assert begun == ["begun"], "it is made for the next"
    compiled = isolated.locate_compiled()
    if compiled is None:
        pytest.skip("librosa is not installed")
    compiled.mkdir(parents=True)
    (compiled / "pitch.nbc").write_bytes(b"ours")
    assert isolated.copy_compiled(box) == {"NUMBA_CACHE_DIR": str(box / "numba")}
    (box / "numba" / "pitch.nbc").write_bytes(b"a stranger's")
    (box / "numba" / "more.nbc").write_bytes(b"a stranger's")
    isolated.copy_compiled(other)
    assert [path.read_bytes() for path in (other / "numba").iterdir()] == [b"ours"], "nothing reaches another box"
