"""The distribution as its users get it: built, installed where there is no checkout, and used.

`python tests/packaging/installed.py` takes a clean environment and every package from the index, which takes minutes:
for releases. `--beside` takes the packages of this environment and installs only podeval anew: for tests.
`--python PATH` makes that environment with another interpreter than this one, such as python3.13.
`--extras` asks pip what it would install for every extra, under the constraints.
`--resolve 3.12 3.13` asks what the index has for Pythons that need not be here: wheels of every extra, as constrained.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
DATA = (
    "podeval/py.typed",
    "podeval/_hub/submissions/schema.json",
    "podeval/_hub/submissions/template.yaml",
    "podeval/_hub/space/app.py",
    "podeval/_hub/space/templates/base.html",
    "podeval/_hub/space/static/podeval.css",
    "podeval/_hub/space/locale/zh/LC_MESSAGES/site.po",
    "podeval/_hub/hf_metrics/wer/wer.py",
    "podeval/_hub/dataset_builders/podbench/sample/test.jsonl",
    "podeval/store/migrations/script.py.mako",
    "podeval/models/weights_lock.json",
    "podeval/text/data/stop_words_zh.txt",
    "podeval/validation/paper_tables/judges.csv",
)
PRIVATE = ("/.git/", "/.venv/", "/shared/", ".pyc", "/.demo/", ".db", ".secret", "/.hypothesis/")
USED = """
import evaluate
metric = evaluate.load("podeval/distinct_n")
said = metric.compute(predictions=["Rivers carry salt, and the sea keeps it."])
assert said["scored"] == 1, said
import podeval, pathlib
place = pathlib.Path(podeval.__file__).resolve()
assert "site-packages" in place.parts, place
print(said["protocol"]["id"])
"""
STORE = """
import pathlib, sys
from podeval.store.database import Database
with Database(pathlib.Path(sys.argv[1])) as opened:
    print(opened.name)
"""
SITE = """
import pathlib, sys
from podeval.files import locate_hub_source
sys.path.insert(0, str(locate_hub_source("space")))
import app
from starlette.testclient import TestClient
with TestClient(app.build(pathlib.Path(sys.argv[1]))) as client:
    for path in ("/queue", "/arena", "/own/podeval.css", "/api/v1/benchmarks"):
        assert client.get(path).status_code == 200, path
print("the site answers")
"""
Tell = Callable[[str], None]
UV = Path(sys.executable).with_name("uv")
SOURCE_ONLY = ("jieba",)
"""Packages of which there is no wheel for any Python; they are plain Python and are built where they are installed."""
PLATFORM = "x86_64-manylinux_2_28"


def build(out: Path) -> tuple[Path, Path]:
    """The wheel, made from the source distribution, and that; by the packages of this environment."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(REPOSITORY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def look(wheel: Path, source: Path) -> None:
    """What must be in the files, and what must not."""
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    with tarfile.open(source) as packed_source:
        sources = {f"/{name.partition('/')[2]}" for name in packed_source.getnames()}
    assert not [name for name in DATA if name not in names]
    versions = (REPOSITORY / "benchmark/podeval/store/migrations/versions").glob("0*.py")
    assert not [v.name for v in versions if f"podeval/store/migrations/versions/{v.name}" not in names]
    assert not [name for name in names if not name.startswith(("podeval/", "podeval-"))]
    for name in (*(f"/{name}" for name in names), *sources):
        assert not any(part in name for part in PRIVATE), name
    assert {"/pyproject.toml", "/constraints.txt", "/LICENSE", "/NOTICE", "/CHANGELOG.md"} <= sources


def environment(folder: Path, *, beside: bool, interpreter: str = "") -> Path:
    """A new environment's Python; with the packages of this one beside, where they are to be seen."""
    if interpreter:
        subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    else:
        venv.create(folder, with_pip=True, symlinks=True)
    if beside:
        # A path alone: what stands in .pth files of that folder, such as this checkout, is not looked at.
        own = next((folder / "lib").glob("python3*")) / "site-packages" / "beside.pth"
        own.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin" / "python"


def use(python: Path, place: Path, tell: Tell = print, *, all_of_it: bool = True) -> None:
    """What a user does first, in a folder without a checkout and without network; the quick part or all of it."""
    home = place / "home"
    home.mkdir()
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("HF_", "PYTHON", "PODEVAL", "PYTEST"))
    }
    clean = kept | {"HOME": str(home), "HF_HOME": str(home / "hf"), "HF_EVALUATE_OFFLINE": "1", "HF_HUB_OFFLINE": "1"}
    program = str(python.with_name("podeval"))

    def run(*command: str) -> str:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=place, env=clean, timeout=300
        )  # fmt: skip
        assert done.returncode == 0, f"{command[:3]}: {done.stdout[-1000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    assert "measure" in run(program, "--help")
    assert "distinct_n" in run(program, "metrics", "list")
    run(program, "metrics", "install")
    assert "podbench" in run(program, "data", "list")
    if all_of_it:
        run(program, "data", "build", "podbench", "--source", "sample", "--out", "made")
        assert (place / "made" / "README.md").is_file()
        (place / "script.txt").write_text(
            "Host 1: Why is the sea salty?\nHost 2: Rivers carry salt.\n", encoding="utf-8"
        )
        assert '"distinct_2"' in run(program, "measure", "distinct_n", "script.txt", "--json")
    tell(f"evaluate.load: {run(str(python), '-c', USED).strip()}")
    if subprocess.run([python, "-c", "import sqlalchemy, alembic"], env=clean, capture_output=True).returncode == 0:
        tell(f"store: {run(str(python), '-c', STORE, str(place / 'new.db')).strip()}")
    if subprocess.run([python, "-c", "import gradio"], env=clean, capture_output=True).returncode == 0:
        tell(run(str(python), "-c", SITE, str(place / "runs")).strip())


def extras() -> dict[str, list[str]]:
    """The extras and what they ask for."""
    declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(declared["project"]["optional-dependencies"])


def would_install(python: Path, wheel: Path, extra: str, seconds: float = 300) -> str:
    """What uv says of an extra under the constraints; empty where it can be installed.

    Not pip, which downloads every package to see what it asks for: gigabytes, and no answer in a quarter of an hour.
    """
    command = [str(UV), "pip", "install", "--dry-run", "--quiet", "--python", str(python), "--constraint"]
    command += [str(REPOSITORY / "constraints.txt"), f"podeval[{extra}] @ {wheel.as_uri()}"]
    if folder := os.environ.get("PIP_FIND_LINKS"):
        command += ["--find-links", folder]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:.0f} s"
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def resolve(version: str, seconds: float = 300) -> str:
    """What uv says of all extras together for a Python on Linux; empty where the index has a wheel of everything."""
    command = [str(UV), "pip", "compile", str(REPOSITORY / "pyproject.toml"), "--quiet", "--python-version", version]
    command += ["--python-platform", PLATFORM, "--constraint", str(REPOSITORY / "constraints.txt")]
    command += ["--only-binary", ":all:", *(f"--no-binary={package}" for package in SOURCE_ONLY)]
    # The diarizer of the reference profile cannot be installed beside the rest, see pyproject.toml.
    command += [f"--extra={extra}" for extra in extras() if extra != "pyannote"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"no answer within {seconds:.0f} s"
    return "" if done.returncode == 0 else " ".join(done.stderr.split())


def main(arguments: Sequence[str] | None = None) -> int:
    """All of it, told line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", action="store_true", help="with this environment's packages")
    parser.add_argument("--extras", nargs="*", help="ask whether these extras, or all, can be installed")
    parser.add_argument("--with", dest="extra", default="", help="install with this extra, such as space")
    parser.add_argument("--python", default="", help="interpreter of the environment; this one's without it")
    parser.add_argument("--resolve", nargs="+", default=(), metavar="VERSION", help="ask whether the index has it all")
    told = parser.parse_args(arguments)
    if told.resolve:
        answers = {version: resolve(version) for version in told.resolve}
        for version, why in answers.items():
            print(f"Python {version}: {why or 'a wheel of everything'}", flush=True)
        return int(any(answers.values()))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        wheel, source = build(place / "dist")
        look(wheel, source)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {source.name}: {source.stat().st_size / 1e6:.1f} MB")
        python = environment(place / "environment", beside=told.beside, interpreter=told.python)
        if told.extras is not None:
            failed = 0
            for extra in told.extras or extras():
                why = would_install(python, wheel, extra)
                failed += bool(why)
                print(f"podeval[{extra}]: {why or 'can be installed'}", flush=True)
            return int(failed > 0)
        named = f"podeval[{told.extra}] @ {wheel.as_uri()}" if told.extra else str(wheel)
        how = ["--no-deps"] if told.beside else ["--constraint", str(REPOSITORY / "constraints.txt")]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *how, named], check=True)
        (place / "away").mkdir()
        use(python, place / "away")
    return 0


if __name__ == "__main__":
    sys.exit(main())
