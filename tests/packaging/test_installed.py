"""The wheel and the source distribution: what is in them, and that podeval works from them without a checkout."""

import hashlib
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).parents[2]

for tool in ("build", "hatchling"):
    pytest.importorskip(tool, reason=f"{tool} is not installed; pip install 'podeval[dev]'")


@pytest.fixture(scope="module")
def packaging() -> ModuleType:
    from tests.packaging import installed

    return installed


@pytest.fixture(scope="module")
def built(packaging: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tuple(packaging.build(tmp_path_factory.mktemp("dist")))  # type: ignore[return-value]


@pytest.mark.long
def test_the_files_hold_what_is_needed_and_nothing_of_this_machine(
    packaging: ModuleType, built: tuple[Path, Path]
) -> None:
    packaging.look(*built)


@pytest.mark.long
def test_podeval_works_from_its_wheel_without_a_checkout(
    packaging: ModuleType, built: tuple[Path, Path], tmp_path: Path
) -> None:
    python = packaging.environment(tmp_path / "environment", beside=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", str(built[0])], check=True)
    (tmp_path / "away").mkdir()
    told: list[str] = []
    packaging.use(python, tmp_path / "away", told.append, all_of_it=False)
    assert told[0].startswith("evaluate.load: distinct_n@")


def test_every_extra_is_pinned_by_the_constraints(packaging: ModuleType) -> None:
    """What the index has is asked by `python tests/packaging/installed.py --extras`; this needs no network."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name
    from packaging.version import Version

    pins = {
        canonicalize_name(name): Version(version.partition("+")[0])
        for line in (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
        for name, _, version in [line.partition("==")]
    }
    core = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    wrong, missing = [], []
    for extra, wanted in {"": core, **packaging.extras()}.items():
        for requirement in map(Requirement, wanted):
            pin = pins.get(canonicalize_name(requirement.name))
            if pin is None:
                missing.append(f"{extra}: {requirement}")
            elif pin not in requirement.specifier:
                wrong.append(f"{extra}: {requirement}, but {pin}")
    assert not wrong
    # The diarizer and the aligner of the reference profile and Higgs Audio's codec cannot be installed beside the rest,
    # see pyproject.toml.
    assert not [name for name in missing if not name.startswith(("pyannote:", "aligner:", "higgs:"))]


@pytest.mark.long
def test_every_extra_can_be_installed_beside_the_pinned_torch(
    packaging: ModuleType, built: tuple[Path, Path], tmp_path: Path
) -> None:
    if not packaging.UV.exists():
        pytest.skip("uv is not installed; pip install 'podeval[dev]'")
    python = packaging.environment(tmp_path / "environment", beside=False)
    wrong = {extra: packaging.would_install(python, built[0], extra) for extra in packaging.extras()}
    if any("Failed to fetch" in why or "error sending request" in why for why in wrong.values()):
        pytest.skip(f"no package index can be asked from here: {wrong}")
    assert not {extra: why for extra, why in wrong.items() if why}


@pytest.mark.long
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_index_has_a_wheel_of_everything_for_every_python_that_is_promised(
    packaging: ModuleType, version: str
) -> None:
    if not packaging.UV.exists():
        pytest.skip("uv is not installed; pip install 'podeval[dev]'")
    why = packaging.resolve(version)
    if "Failed to fetch" in why or "error sending request" in why or "no answer" in why:
        pytest.skip(f"no package index can be asked from here: {why}")
    assert not why


@pytest.mark.long
def test_two_builds_of_one_commit_are_the_same_files(
    packaging: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release can be built again by anybody and compared with what was uploaded."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1763856000")
    digests = []
    for name in ("first", "second"):
        files = packaging.build(tmp_path / name)
        digests.append({file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files})
    assert digests[0] == digests[1]
