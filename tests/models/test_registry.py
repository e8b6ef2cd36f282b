"""Models are named, checked before they are opened, loaded once, and never replaced by another in silence."""

import dataclasses
import hashlib
import importlib
import sys
import time
import types
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import BadInput, ModelMissing
from podeval.models import interfaces, registry
from podeval.models.card import ModelCard, PackagedFile

BUILT: Counter[str] = Counter()


class Stub:
    """A model that takes its time to load."""

    def __init__(self, files: dict[str, Path], **options: Any) -> None:
        BUILT[type(self).__name__] += 1
        time.sleep(0.2)
        self.files, self.options = files, options


class Broken:
    """A model whose library is broken, or whose weights are another network's."""

    def __init__(self, files: dict[str, Path], error: Exception) -> None:
        raise error


def card(**fields: Any) -> ModelCard:
    plain = ModelCard(
        id="stub",
        job="transcriber",
        title="Stub",
        revision="1",
        licence="MIT",
        megabytes=0.1,
        rate=16_000,
        profiles=("embedded",),
        packages=(),
        build="stub_models:Stub",
        options={"beam": 1},
    )
    return dataclasses.replace(plain, **fields)


@pytest.fixture(autouse=True)
def stub_models(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = types.ModuleType("stub_models")
    module.Stub, module.Broken = Stub, Broken  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "stub_models", module)
    BUILT.clear()
    registry.build_model.cache_clear()
    yield
    registry.build_model.cache_clear()


def use(monkeypatch: pytest.MonkeyPatch, *cards: ModelCard) -> None:
    monkeypatch.setattr(registry, "CARDS", cards)


def test_eight_threads_load_a_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, card(), card(id="other", job="diarizer"))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda job: registry.load(job, "embedded"), ("transcriber", "diarizer") * 4))
    assert BUILT["Stub"] == 2
    assert len(set(map(id, found[::2]))) == 1
    assert found[0].options == {"beam": 1}


@pytest.mark.parametrize(
    ("error", "raised", "sentence"),
    [
        (
            ImportError("undefined symbol"),
            ModelMissing,
            r"Stub cannot be loaded because .*undefined symbol\); run `pip install",
        ),
        (KeyError("bn4.weight"), ModelMissing, r"weights of Stub do not fit .* \('bn4.weight'\); please"),
        (RuntimeError("Missing key(s):\n bn4"), ModelMissing, r"do not fit its network \(Missing key\(s\): bn4\)"),
        (RuntimeError("CUDA out of memory"), RuntimeError, "^CUDA out of memory$"),
    ],
)
def test_a_model_that_cannot_be_built_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, error: Exception, raised: type[Exception], sentence: str
) -> None:
    use(monkeypatch, card(build="stub_models:Broken", options={"error": error}))
    with pytest.raises(raised, match=sentence):
        registry.load("transcriber", "embedded")


def test_a_package_that_is_absent_gives_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, card(packages=("json", "no_such_package_at_all"), extra="embedded"))
    with pytest.raises(
        ModelMissing, match=r"^Stub needs no_such_package_at_all; run `pip install 'podeval\[embedded\]'`$"
    ):
        registry.load("transcriber", "embedded")
    assert not BUILT


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed library with a weight file in it."""
    folder = tmp_path / "libraries" / "carrier"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('a library is not imported to find its file')")
    (folder / "weights.bin").write_bytes(b"good")
    monkeypatch.syspath_prepend(str(tmp_path / "libraries"))
    return folder / "weights.bin"


def packaged(sha256: str) -> ModelCard:
    return card(packages=("carrier",), files=(PackagedFile("carrier", "weights.bin", sha256),))


def test_a_file_inside_a_library_is_checked_and_handed_over(monkeypatch: pytest.MonkeyPatch, package: Path) -> None:
    use(monkeypatch, packaged(hashlib.sha256(b"good").hexdigest()))
    assert registry.load("transcriber", "embedded").files == {"weights.bin": package}


@pytest.mark.parametrize("content", [b"evil", b"goo", b""], ids=["as long", "cut", "empty"])
def test_a_tampered_file_inside_a_library_is_never_opened(
    monkeypatch: pytest.MonkeyPatch, package: Path, content: bytes
) -> None:
    package.write_bytes(content)
    use(monkeypatch, packaged(hashlib.sha256(b"good").hexdigest()))
    with pytest.raises(ModelMissing, match=r"not the pinned file .* run `pip install --force-reinstall carrier`"):
        registry.load("transcriber", "embedded")
    assert not BUILT


def test_identities_name_model_revision_weights_and_options_and_none_where_there_is_no_model() -> None:
    found = registry.describe_identities(("transcriber", "speech_quality"), "reference")
    assert found["speech_quality"] == registry.describe_identities(("speech_quality",), "embedded")["speech_quality"]
    heard = registry.describe_identities(("transcriber",), "embedded")["transcriber"]
    assert heard["id"] == "openai/whisper-base"
    assert heard["options"]["temperature"] == 0.0
    assert set(heard["sha256"]) == {"model.bin", "config.json", "tokenizer.json", "vocabulary.txt"}


def test_a_quantised_model_has_an_id_of_its_own_and_is_no_profile_s_default() -> None:
    for card in registry.CARDS:
        quantised = any("int8" in str(value) for value in card.options.values())
        assert card.id.endswith("-int8") == quantised, card.id
        assert not (quantised and card.profiles), card.id
    default = registry.get_card("transcriber", "embedded")
    assert (default.id, default.options["compute"]) == ("openai/whisper-base", "float32")
    assert registry.get_card("transcriber", "embedded,transcriber=openai/whisper-base") is default
    by_name = registry.get_card("transcriber", "embedded,transcriber=openai/whisper-base-int8")
    assert by_name.options == {**default.options, "compute": "int8"}
    whole = registry.get_card("transcriber", "reference,transcriber=openai/whisper-base")
    assert (whole.id, whole.options) == ("openai/whisper-base", {"num_beams": 1})


def test_no_model_stands_in_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, card())
    with pytest.raises(ModelMissing, match=r"the reference profile has no transcriber .*; --profile embedded has Stub"):
        registry.load("transcriber", "reference")


@pytest.mark.parametrize("profile", ["paper", "nosuch", ""])
def test_a_profile_that_cannot_be_run_is_refused(profile: str) -> None:
    with pytest.raises(BadInput, match=r"no profile .* that can be run; choose embedded or reference"):
        registry.get_card("transcriber", profile)


@pytest.mark.parametrize(
    ("job", "profile", "licence"),
    [
        ("aligner", "reference", "CC BY-NC 4.0"),
        ("audio_text", "reference", ""),
        ("nisqa_tts", "reference", "not for commercial use"),
        ("pesq_estimator", "reference", ""),
        ("utmos22", "reference", "MIT"),
        ("voice_activity", "embedded", ""),
        ("speaker_encoder", "embedded", ""),
        ("diarizer", "embedded", ""),
    ],
)
def test_weights_are_pinned_by_their_content_and_their_licence_is_on_the_card(
    job: str, profile: str, licence: str
) -> None:
    card = registry.get_card(job, profile)
    assert card.hashes
    assert licence in card.licence


@pytest.mark.parametrize("card", registry.CARDS, ids=lambda card: f"{card.job}-{card.id}")
def test_every_card_is_complete(card: ModelCard) -> None:
    assert card.job in registry.JOBS
    assert card.licence
    assert card.megabytes > 0
    assert card.profiles or card.variant_in
    assert all(len(digest) == 64 for digest in card.hashes.values())
    assert card.hashes or card.packages
    assert card.missing() is None or "run `" in str(card.missing())


@pytest.mark.parametrize("card", registry.CARDS, ids=lambda card: f"{card.job}-{card.id}")
def test_every_card_builds_what_is_checked_by_the_interface_of_its_job(card: ModelCard) -> None:
    if card.job == "speech_quality":
        return
    scorers = ("naturalness", "pesq_estimator", "loss_quality", "utmos22")
    shared = dict.fromkeys(scorers, "WindowScorer")
    shared |= {"nisqa_tts": "RateAwareScorer", "second_transcriber": "Transcriber"}
    interface = shared.get(card.job, card.job.title().replace("_", ""))
    module, _, name = card.build.partition(":")
    assert getattr(interfaces, interface) in getattr(importlib.import_module(module), name).__mro__
