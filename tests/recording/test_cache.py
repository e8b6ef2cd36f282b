"""The cache loses time at worst, never a result, whatever happens to its files."""

import errno
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from podeval.errors import BadInput
from podeval.recording import cache as module
from podeval.recording.cache import Cache, open_default_cache

KEY = Cache.key("content", "fact", model={"id": "m"}, language="en")


def entry(cache: Cache) -> Path:
    return cache.folder / KEY[:2] / KEY[2:]


def test_what_was_put_is_there_for_another_object_on_the_same_folder(cache: Cache) -> None:
    assert cache.get(KEY) is None
    cache.put(KEY, b"value")
    assert Cache(cache.folder).get(KEY) == b"value"


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: entry[:-1] + b"X",
        lambda entry: entry[:20],
        lambda entry: b"",
        lambda entry: entry[:32],
        lambda entry: entry + b"more",
        lambda entry: b"\0" * 64,
    ],
    ids=["flipped", "cut in the digest", "empty", "payload lost", "longer", "zeros"],
)
def test_a_damaged_entry_is_no_entry_and_is_replaced(cache: Cache, damage: object) -> None:
    cache.put(KEY, b"value")
    assert callable(damage)
    entry(cache).write_bytes(damage(entry(cache).read_bytes()))
    assert cache.get(KEY) is None
    cache.put(KEY, b"value")
    assert cache.get(KEY) == b"value"


def test_an_entry_that_is_a_folder_is_no_entry(cache: Cache) -> None:
    entry(cache).mkdir(parents=True)
    assert cache.get(KEY) is None
    cache.put(KEY, b"value")


def test_what_a_killed_writer_left_is_never_read_and_goes_in_time(cache: Cache) -> None:
    cache.put(KEY, b"value")
    leftover = entry(cache).parent / ".partial-abc"
    leftover.write_bytes(b"half")
    os.utime(leftover, (1, 1))
    assert cache.get(KEY) == b"value"
    cache.limit = 40
    cache.prune()
    assert not leftover.exists()
    assert cache.get(KEY) == b"value"


def test_the_longest_unused_entries_go_first_and_the_limit_holds(cache: Cache) -> None:
    keys = [Cache.key(str(number), "fact") for number in range(10)]
    for number, key in enumerate(keys):
        cache.put(key, bytes(100))
        os.utime(cache.folder / key[:2] / key[2:], (number + 1, number + 1))
    assert cache.get(keys[0]) is not None  # used just now
    cache.limit = 3 * 132
    cache.prune()
    kept = [number for number, key in enumerate(keys) if cache.get(key) is not None]
    assert kept == [0, 8, 9]


def test_writing_alone_keeps_the_folder_near_its_limit(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PRUNE_EVERY", 5)
    cache.limit = 10 * 132
    for number in range(60):
        cache.put(Cache.key(str(number), "fact"), bytes(100))
    assert len(list(cache.folder.glob("??/*"))) <= 10 + 5


def test_a_folder_is_looked_through_now_and_then_by_whichever_process(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    look = Cache.prune
    monkeypatch.setattr(Cache, "prune", lambda self: (looks.append(written), look(self)))
    monkeypatch.setattr(module, "_PRUNE_EVERY", 5)
    cache.limit = 1_000 * 132
    for written in range(1, 100):
        cache.put(Cache.key(str(written), "fact"), bytes(100))
    # A fiftieth of the limit is 20 entries.
    assert looks == [1, 21, 41, 61, 81]
    # A process that has just begun relies on the last look, until it is too old.
    Cache(cache.folder, cache.limit).put(Cache.key("another", "fact"), bytes(100))
    assert len(looks) == 5
    (last_look,) = cache.folder.glob(".*")
    os.utime(last_look, (1, 1))
    Cache(cache.folder, cache.limit).put(Cache.key("later", "fact"), bytes(100))
    assert len(looks) == 6


def test_a_place_that_cannot_be_written_costs_only_the_entry(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file" / "cache")
    cache.put(KEY, b"value")
    assert cache.get(KEY) is None


def test_a_full_disk_costs_only_the_entry_and_leaves_nothing(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put(KEY, b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        cache.put(KEY, b"new")
    assert cache.get(KEY) == b"old"
    assert [path.name for path in entry(cache).parent.iterdir()] == [entry(cache).name]


def test_two_processes_share_a_folder(cache: Cache) -> None:
    program = textwrap.dedent(f"""
        from pathlib import Path
        from podeval.recording.cache import Cache
        cache = Cache(Path({str(cache.folder)!r}), limit=2000)
        for turn in range(300):
            key = Cache.key(str(turn % 20), "fact")
            found = cache.get(key)
            assert found in (None, str(turn % 20).encode() * 50), found
            cache.put(key, str(turn % 20).encode() * 50)
            cache.prune()
    """)
    both = [subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()


def test_the_key_names_everything_that_can_change_a_fact() -> None:
    same = Cache.key("content", "fact", language="en", model={"id": "m"})
    assert same == KEY
    others = [
        Cache.key("other", "fact", model={"id": "m"}, language="en"),
        Cache.key("content", "other", model={"id": "m"}, language="en"),
        Cache.key("content", "fact", model={"id": "n"}, language="en"),
        Cache.key("content", "fact", model={"id": "m", "options": {"beam": 5}}, language="en"),
        Cache.key("content", "fact", model={"id": "m"}, language="zh"),
        Cache.key("content", "fact", model={"id": "m"}),
    ]
    assert len({KEY, *others}) == 7


def test_reading_is_use(cache: Cache) -> None:
    cache.put(KEY, b"value")
    os.utime(entry(cache), (1, 1))
    cache.get(KEY)
    assert time.time() - entry(cache).stat().st_mtime < 60


def test_a_size_that_is_no_number_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_CACHE_GB", "plenty")
    with pytest.raises(BadInput, match="PODEVAL_CACHE_GB must be a number of gigabytes, such as 20, not 'plenty'"):
        open_default_cache.__wrapped__()
