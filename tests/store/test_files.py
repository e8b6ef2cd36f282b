"""Files are there whole or not at all, and a line that was acknowledged stays."""

import errno
import os
import resource
import signal
import stat
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from podeval.errors import BadInput
from podeval.files import DiskFull, append_line, lock_folder, read_lines, write_json, write_whole


def test_lines_come_back_in_order_and_no_file_is_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lines.jsonl"
    assert read_lines(path) == []
    for number in range(3):
        append_line(path, {"n": number, "text": "zwei\nZeilen \u2028 🎙"})
    assert [line["n"] for line in read_lines(path)] == [0, 1, 2]
    assert read_lines(path)[0]["text"] == "zwei\nZeilen \u2028 🎙"


@pytest.mark.parametrize("half", [b'{"n": ', b"{", b'{"n": 3}', b"\0" * 500, b"x" * 200_000])
def test_a_half_written_last_line_is_ignored_and_then_cut_off(tmp_path: Path, half: bytes) -> None:
    path = tmp_path / "lines.jsonl"
    append_line(path, {"n": 0})
    with path.open("ab") as file:
        file.write(half)
    assert read_lines(path) == [{"n": 0}]
    append_line(path, {"n": 1})
    assert path.read_bytes() == b'{"n": 0}\n{"n": 1}\n'


def test_a_file_that_is_only_half_a_line_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"n":')
    assert read_lines(path) == []
    append_line(path, {"n": 1})
    assert read_lines(path) == [{"n": 1}]


def test_not_a_number_is_never_written(tmp_path: Path) -> None:
    append_line(tmp_path / "lines.jsonl", {"n": 0})
    with pytest.raises(ValueError, match="not JSON compliant"):
        append_line(tmp_path / "lines.jsonl", {"n": float("nan")})
    assert read_lines(tmp_path / "lines.jsonl") == [{"n": 0}]


def test_a_reader_sees_the_old_or_the_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"n": 0})

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DiskFull, match="free some space and run the same command again"):
        write_json(path, {"n": 1})
    assert path.read_text() == '{\n "n": 0\n}\n'
    assert [found.name for found in tmp_path.iterdir()] == ["a.json"]


def test_threads_that_write_one_file_do_not_break_each_other(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda number: write_whole(path, bytes([number % 3]) * 100_000), range(150)))
    content = path.read_bytes()
    assert content == content[:1] * 100_000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_who_may_read_a_file_is_what_the_process_says(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "a", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


def test_the_name_of_a_new_file_is_synced_with_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def noted(file: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{file}"))
        real(file)

    monkeypatch.setattr("os.fsync", noted)
    write_whole(tmp_path / "whole", b"")
    assert synced[-1] == str(tmp_path)
    append_line(tmp_path / "lines.jsonl", {})
    assert synced[-2:] == [str(tmp_path / "lines.jsonl"), str(tmp_path)]
    append_line(tmp_path / "lines.jsonl", {})
    assert synced[-1] == str(tmp_path / "lines.jsonl"), "the name is there already"


def _grow_until_refused(path: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
    for number in range(100):
        try:
            append_line(path, {"n": number, "padding": "x" * 40})
        except DiskFull:
            os._exit(number)


def test_where_a_file_may_not_grow_every_line_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    child = get_context("fork").Process(target=_grow_until_refused, args=(path,))
    child.start()
    child.join()
    assert child.exitcode == len(read_lines(path)) == 500 // len(path.read_bytes().splitlines(keepends=True)[0])
    append_line(path, {"n": "after"})
    assert read_lines(path)[-1] == {"n": "after"}


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refusal = r"cannot write .*; choose a folder that you can write to"
    with pytest.raises(BadInput, match=refusal):
        write_whole(tmp_path / "file" / "a", b"")
    with pytest.raises(BadInput, match=refusal):
        append_line(tmp_path / "file" / "a", {})
    with pytest.raises(BadInput, match=refusal), lock_folder(tmp_path / "file"):
        pass


def _hold_and_die(folder: Path) -> None:
    with lock_folder(folder):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_lock_goes_with_the_process_that_held_it(tmp_path: Path) -> None:
    child = get_context("fork").Process(target=_hold_and_die, args=(tmp_path,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    with lock_folder(tmp_path), pytest.raises(BadInput, match="another podeval run"), lock_folder(tmp_path):
        pass
