"""What PostgreSQL's own tools dump and bring back is the database as it was."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fakes.databases import Make
from tests.survival.test_backup import everything


@pytest.mark.parametrize("database_place", ["postgresql"], indirect=True)
def test_a_dump_of_ones_own_brings_back_what_was_there(small_arena: Make, database_place: str, tmp_path: Path) -> None:
    dumps, restores = shutil.which("pg_dump"), shutil.which("pg_restore")
    if dumps is None or restores is None:
        pytest.skip("PostgreSQL's client programs are not installed (apt-get install postgresql-client)")
    small = small_arena(gold_share=0.0)
    for number in range(3):
        small.vote("somebody", id=f"before-{number:04}")
    address, _, schema = database_place.partition("?options=-csearch_path%3D")
    dump = tmp_path / "own.dump"
    subprocess.run([dumps, "--format=custom", f"--schema={schema}", f"--file={dump}", address], check=True)
    before = everything(database_place, without="")
    small.vote("somebody", id="after-0001")
    assert everything(database_place, without="") != before
    small.close()
    back = [restores, "--clean", "--if-exists", "--single-transaction", "--exit-on-error"]
    subprocess.run([*back, f"--dbname={address}", dump], check=True, env=os.environ | {"PGCONNECT_TIMEOUT": "10"})
    assert everything(database_place, without="") == before
    again = small_arena(database_place)
    again.clock.on(86_400)
    assert again.vote("another", id="after-the-restore").number == 4, "numbers go on"
