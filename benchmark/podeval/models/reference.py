"""The reference profile: the papers' models, from the Hub by pinned revision.

Revisions are those that public projects pin; `podeval models install --profile reference` reports one that is gone.
Files that are pickles are also pinned by their SHA-256 wherever it is publicly known.
"""

from typing import Any

from podeval.models.card import HubRepo, ModelCard

_WHISPER = (
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)
_BERT = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")

_WHISPER_BASE = HubRepo("openai/whisper-base", "e37978b90ca9030d5170a5c07aadb050351a65bb", _WHISPER)


def _make_hub_card(repo: HubRepo, *, extra: str = "reference", **facts: Any) -> ModelCard:
    """Create the card of a model that is one repo."""
    return ModelCard(id=repo.id, revision=repo.revision, hub=(repo,), extra=extra, **facts)


CARDS: tuple[ModelCard, ...] = (
    _make_hub_card(
        HubRepo("openai/whisper-large-v3", "06f233fe06e710322aca913c1bc4249a0d71fce1", _WHISPER),
        job="transcriber",
        title="Whisper large v3",
        licence="Apache-2.0",
        megabytes=3_100,
        rate=16_000,
        profiles=("reference",),
        packages=("torch", "transformers"),
        options={"num_beams": 1},
        build="podeval.models.whisper_transformers:WhisperTransformers",
    ),
    _make_hub_card(
        _WHISPER_BASE,
        job="transcriber",
        title="Whisper base",
        licence="Apache-2.0",
        megabytes=293,
        rate=16_000,
        profiles=(),
        variant_in=("reference",),
        packages=("torch", "transformers"),
        options={"num_beams": 1},
        build="podeval.models.whisper_transformers:WhisperTransformers",
    ),
    _make_hub_card(
        _WHISPER_BASE,
        job="second_transcriber",
        title="Whisper base",
        licence="Apache-2.0",
        megabytes=293,
        rate=16_000,
        profiles=("reference",),
        packages=("torch", "transformers"),
        options={"num_beams": 1},
        build="podeval.models.whisper_transformers:WhisperTransformers",
    ),
    ModelCard(
        id="torchaudio/mms-fa",
        job="aligner",
        title="MMS forced aligner (not run on real weights)",
        revision="ctc_alignment_mling_uroman",
        licence="CC BY-NC 4.0, not for commercial use (uroman: its own, free)",
        megabytes=1_262,
        rate=16_000,
        profiles=("reference",),
        packages=("torch", "torchaudio", "uroman"),
        weights="mms-fa",
        build="podeval.models.mms_aligner:MmsAligner",
        extra="aligner",
    ),
    _make_hub_card(
        HubRepo(
            "microsoft/wavlm-base-plus-sv",
            "feb593a6c23c1cc3d9510425c29b0a14d2b07b1e",
            ("config.json", "preprocessor_config.json", "pytorch_model.bin"),
        ),
        job="speaker_encoder",
        title="WavLM base plus x-vectors (512 dimensions)",
        licence="CC BY-SA 3.0",
        megabytes=405,
        rate=16_000,
        profiles=("reference",),
        packages=("torch", "transformers"),
        build="podeval.models.wavlm_xvector:WavLMXVector",
    ),
    ModelCard(
        id="microsoft/unispeech-wavlm-large",
        job="speaker_encoder",
        title="WavLM-Large with ECAPA-TDNN (UniSpeech, as in Seed-TTS's evaluation)",
        revision="e876de7154845cd668b599bd4866f1d354c723df",
        licence="CC BY-SA 3.0",
        megabytes=1_302,
        rate=16_000,
        variant_in=("reference",),
        packages=("torch", "transformers"),
        hub=(
            HubRepo(
                "k2-fsa/TTS_eval_models",
                "e876de7154845cd668b599bd4866f1d354c723df",
                ("speaker_similarity/wavlm_large_finetune.pth",),
                sha256={
                    "speaker_similarity/wavlm_large_finetune.pth": (
                        "51f07e3b94d9e0262a6a675ef5a087be3dd09e8c62e9d886827f44f82fe7f94b"
                    )
                },
            ),
        ),
        build="podeval.models.wavlm_ecapa:WavLMEcapa",
        extra="reference",
    ),
    _make_hub_card(
        HubRepo(
            "pyannote/embedding",
            "4db4899737a38b2d618bbd74350915aa10293cb2",
            ("pytorch_model.bin",),
            gated=True,
        ),
        job="speaker_encoder",
        title="pyannote x-vectors (512 dimensions)",
        licence="MIT",
        megabytes=97,
        rate=16_000,
        profiles=(),
        variant_in=("reference",),
        packages=("torch", "pyannote.audio", "pytorch_lightning", "omegaconf"),
        extra="pyannote",
        build="podeval.models.pyannote:PyannoteEmbedding",
    ),
    _make_hub_card(
        HubRepo(
            "pyannote/speaker-diarization-community-1",
            "3533c8cf8e369892e6b79ff1bf80f7b0286a54ee",
            (
                "config.yaml",
                "segmentation/pytorch_model.bin",
                "embedding/pytorch_model.bin",
                "plda/plda.npz",
                "plda/xvec_transform.npz",
            ),
            gated=True,
            sha256={
                "config.yaml": "5ce2bfa9a938dc132cec1172592d65173cbb8f444ea1e4133f10f9391de155be",
                "segmentation/pytorch_model.bin": "7ad24338d844fb95985486eb1a464e32d229f6d7a03c9abe60f978bacf3f816e",
                "embedding/pytorch_model.bin": "6f10ff60898a1d185fa22e1d11e0bfa8a92efec811f11bca48cb8cafebefd929",
                "plda/plda.npz": "9b77bcd840692710dd3496f62ecfeed8d8e5f002fd991b785079b244eab7d255",
                "plda/xvec_transform.npz": "325f1ce8e48f7e55e9c8aa47e05d2766b7c48c4b25b8de8dd751e7a4cc5fbe8f",
            },
        ),
        job="diarizer",
        title="pyannote community-1",
        licence="CC BY 4.0",
        megabytes=33,
        rate=16_000,
        profiles=("reference",),
        packages=("torch", "pyannote.audio"),
        extra="pyannote",
        build="podeval.models.pyannote:PyannoteDiarizer",
    ),
    ModelCard(
        id="pyannote/speaker-diarization-3.0",
        job="diarizer",
        title="pyannote 3.0",
        revision="3.0",
        licence="MIT (segmentation), CC BY 4.0 (embedding)",
        megabytes=33,
        rate=16_000,
        variant_in=("reference",),
        packages=("torch", "pyannote.audio", "onnxruntime"),
        hub=(
            HubRepo(
                "pyannote/segmentation-3.0",
                "e66f3d3b9eb0873085418a7b813d3b369bf160bb",
                ("pytorch_model.bin",),
                gated=True,
                sha256={"pytorch_model.bin": "da85c29829d4002daedd676e012936488234d9255e65e86dfab9bec6b1729298"},
            ),
            HubRepo(
                "hbredin/wespeaker-voxceleb-resnet34-LM",
                "0ae88dcaf48cacdf741275d6d1a8101f45eee220",
                ("speaker-embedding.onnx",),
                sha256={"speaker-embedding.onnx": "7bb2f06e9df17cdf1ef14ee8a15ab08ed28e8d0ef5054ee135741560df2ec068"},
            ),
        ),
        options={"clustering": "centroid", "threshold": 0.7045654963945799, "min_cluster_size": 12},
        extra="pyannote",
        build="podeval.models.pyannote:Pyannote3Diarizer",
    ),
    _make_hub_card(
        HubRepo(
            "adefossez/HTDemucs",
            "cbc8a9b1a87023b7fd74e7b3412e6321c0eab003",
            ("955717e8.safetensors",),
            sha256={"955717e8.safetensors": "d9fa14133cfcc034a6758923bb3a8ca9f8dfd0b582134643bbf83f72c17576dd"},
        ),
        job="separator",
        title="Hybrid Transformer Demucs",
        licence="MIT (code); its repo states none for the weights",
        megabytes=84,
        rate=44_100,
        profiles=("reference",),
        packages=("torch", "demucs"),
        options={"weights": "955717e8.safetensors", "overlap": 0.25},
        build="podeval.models.demucs_separator:HTDemucs",
    ),
    ModelCard(
        id="google-bert/bert-base",
        job="sentence_encoder",
        title="BERT base (uncased English, Chinese)",
        revision="2018",
        licence="Apache-2.0",
        megabytes=852,
        rate=0,
        profiles=("reference",),
        packages=("torch", "transformers"),
        hub=(
            HubRepo("google-bert/bert-base-uncased", "86b5e0934494bd15c9632b12f734a8a67f723594", _BERT),
            HubRepo("google-bert/bert-base-chinese", "8f23c25b06e129b6c986331a13d8d025a92cf0ea", _BERT),
        ),
        options={
            "models": {"en": "google-bert/bert-base-uncased", "zh": "google-bert/bert-base-chinese"},
            "pooling": "first",
            "longest": 512,
        },
        build="podeval.models.sentence_bert:SentenceBert",
        extra="reference",
    ),
    _make_hub_card(
        HubRepo("sentence-transformers/all-MiniLM-L6-v2", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf", _BERT),
        job="sentence_encoder",
        title="MiniLM L6 (all-MiniLM-L6-v2)",
        licence="Apache-2.0",
        megabytes=91,
        rate=0,
        profiles=(),
        variant_in=("reference",),
        packages=("torch", "transformers"),
        options={"models": {"en": "sentence-transformers/all-MiniLM-L6-v2"}, "pooling": "mean", "longest": 256},
        build="podeval.models.sentence_bert:SentenceBert",
    ),
    ModelCard(
        id="microsoft/msclap",
        job="audio_text",
        title="MS-CLAP 2023",
        revision="2023",
        licence="MS-PL (GPT-2's tokenizer: MIT)",
        megabytes=692,
        rate=44_100,
        profiles=("reference",),
        packages=("torch", "transformers", "tokenizers"),
        hub=(
            HubRepo(
                "microsoft/msclap",
                "c47d441165daa21986ead0850660917636a81775",
                ("CLAP_weights_2023.pth",),
                sha256={"CLAP_weights_2023.pth": "2cef4016d47d00eb28d153d522f397222057f95000e9bad6b9583c631284a1e6"},
            ),
            HubRepo(
                "openai-community/gpt2", "607a30d783dfa663caf39e06633721c8d4cfcd7e", ("config.json", "tokenizer.json")
            ),
        ),
        build="podeval.models.networks.msclap:MsClap",
        extra="reference",
    ),
    ModelCard(
        id="torchaudio/squim-objective",
        job="pesq_estimator",
        title="SQUIM objective (DNS 2020)",
        revision="squim_objective_dns2020",
        licence="CC BY 4.0",
        megabytes=30,
        rate=16_000,
        profiles=("reference",),
        packages=("torch",),
        weights="squim-objective",
        build="podeval.models.networks.squim:Squim",
        extra="reference",
    ),
    _make_hub_card(
        HubRepo(
            "k2-fsa/TTS_eval_models",
            "e876de7154845cd668b599bd4866f1d354c723df",
            ("mos/utmos22_strong_step7459_v1.pt",),
            sha256={
                "mos/utmos22_strong_step7459_v1.pt": "38aa51ab79e2a4e09a1449758a4b37e9cbb2e8235a49662a732d33a9ba1e9bff"
            },
        ),
        job="utmos22",
        title="UTMOS22 strong learner (SpeechMOS)",
        licence="MIT",
        megabytes=411,
        rate=16_000,
        profiles=("reference",),
        packages=("torch", "transformers"),
        options={"weights": "mos/utmos22_strong_step7459_v1.pt"},
        build="podeval.models.networks.utmos22:Utmos22",
    ),
    ModelCard(
        id="gabrielmittag/NISQA-TTS",
        job="nisqa_tts",
        title="NISQA-TTS",
        revision="fe84f0f252abec382b24367d5b22498a7ce34dbb",
        licence="CC BY-NC-SA 4.0, not for commercial use (code: MIT)",
        megabytes=1.2,
        rate=16_000,
        profiles=("reference",),
        packages=("torch", "transformers"),
        weights="nisqa-tts",
        build="podeval.models.networks.nisqa:NisqaTts",
        extra="reference",
    ),
    # No commit of this repo is publicly known; its checkpoint is read as tensors only.
    _make_hub_card(
        HubRepo("wonderfuluuuuuuuuuuu/DualDub", "main", ("podcast-10s.ckpt",)),
        job="harmony",
        title="CASP (two BEATs encoders, podcasts)",
        licence="not stated (code: MIT)",
        megabytes=730,
        rate=16_000,
        profiles=("reference",),
        packages=("torch",),
        options={"furthest": 800, "deep_norm": True},
        build="podeval.models.networks.casp:Casp",
    ),
)
