"""Submissions so small that a test makes them: random weights of fixed seeds, in the files that real ones have."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% if enable_thinking is defined and not enable_thinking %}"
    "<think></think>{% endif %}{% endif %}"
)


def make_byte_tokenizer(special: list[str], **options: Any) -> tuple[dict[str, int], Any]:
    """A tokenizer of ASCII by bytes that knows some marks, and the numbers of all its tokens."""
    letters = [chr(code) for code in range(33, 127)] + ["\u0120", "\u010a"]
    numbers = {token: place for place, token in enumerate([*special, *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=numbers, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return numbers, transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **options)


def vits(folder: Path, *, speakers: int = 1) -> Path:
    """A VITS that knows the small letters."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = {letter: number for number, letter in enumerate("_ abcdefghijklmnopqrstuvwxyz'-")}
    (folder / "letters.json").write_text(json.dumps(letters))
    transformers.VitsTokenizer(
        str(folder / "letters.json"), pad_token="_", unk_token=" ", normalize=True, phonemize=False
    ).save_pretrained(folder)
    (folder / "letters.json").unlink()
    torch.manual_seed(0)
    many = {"num_speakers": speakers, "speaker_embedding_size": 8} if speakers > 1 else {}
    model = transformers.VitsModel(
        transformers.VitsConfig(
            vocab_size=len(letters),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            ffn_dim=16,
            flow_size=16,
            spectrogram_bins=9,
            use_stochastic_duration_prediction=False,
            upsample_initial_channel=16,
            upsample_rates=[16, 16],
            upsample_kernel_sizes=[32, 32],
            resblock_kernel_sizes=[3],
            resblock_dilation_sizes=[[1, 3]],
            duration_predictor_filter_channels=16,
            prior_encoder_num_flows=2,
            prior_encoder_num_wavenet_layers=1,
            posterior_encoder_num_wavenet_layers=1,
            initializer_range=0.3,
            sampling_rate=16_000,
            layerdrop=0.0,
            **many,
        )
    )
    # As if trained: a letter lasts about three frames of 16 ms, and samples reach to about a tenth of full scale.
    torch.nn.init.constant_(model.duration_predictor.proj.bias, 1.0)
    torch.nn.init.normal_(model.decoder.conv_post.weight, std=0.2)
    model.save_pretrained(folder)
    return folder


def dia(folder: Path, *, codec: str | None = "audio_tokenizer", steps: int = 48) -> Path:
    """A Dia with three codebooks, its codec beside it or, with `codec=None`, in `<folder>-codec`."""
    torch.manual_seed(1)
    layers = {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2}
    sizes: dict[str, Any] = {**layers, "head_dim": 16, "intermediate_size": 32}
    cross = {"cross_num_attention_heads": 2, "cross_head_dim": 16, "cross_num_key_value_heads": 2}
    delay = [0, 8, 9, 10, 11, 12, 13, 14, 15]
    model = transformers.DiaForConditionalGeneration(
        transformers.DiaConfig(
            encoder_config=transformers.DiaEncoderConfig(max_position_embeddings=1024, **sizes),
            decoder_config=transformers.DiaDecoderConfig(
                max_position_embeddings=512, cross_hidden_size=32, num_channels=len(delay), **cross, **sizes
            ),
            delay_pattern=delay,
        )
    )
    marks = {"eos_token_id": 1024, "pad_token_id": 1025, "bos_token_id": 1026, "decoder_start_token_id": 1026}
    model.generation_config = transformers.GenerationConfig(
        **marks, do_sample=True, max_new_tokens=steps, temperature=1.2, top_p=0.95
    )
    model.save_pretrained(folder)
    transformers.DiaTokenizer().save_pretrained(folder)
    transformers.DiaFeatureExtractor(sampling_rate=16_000, hop_length=512).save_pretrained(folder)
    torch.manual_seed(2)
    transformers.DacModel(
        transformers.DacConfig(encoder_hidden_size=4, decoder_hidden_size=32, n_codebooks=len(delay), codebook_dim=2)
    ).save_pretrained(folder / codec if codec else folder.with_name(f"{folder.name}-codec"))
    return folder


def draw_weights(model: Any, spread: float) -> None:
    """Random weights, and random codebooks, which are buffers and would all be zero."""
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.normal_(std=spread)
        for name, codes in model.named_buffers():
            if name.endswith(("codebook.embed", "codebook.embed_sum")):
                codes.normal_()


def bark(folder: Path) -> Path:
    """A Bark of one layer in each of its parts, with voice presets of random codes."""
    from transformers.models.bark.generation_configuration_bark import (
        BarkCoarseGenerationConfig,
        BarkFineGenerationConfig,
        BarkGenerationConfig,
        BarkSemanticGenerationConfig,
    )

    folder.mkdir(parents=True, exist_ok=True)
    letters = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.,?'"]
    letters += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    (folder / "vocab.txt").write_text("\n".join(letters))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_size": 8, "block_size": 1024}
    torch.manual_seed(6)
    model = transformers.BarkModel(
        transformers.BarkConfig(
            semantic_config=transformers.BarkSemanticConfig(
                **sizes, input_vocab_size=129_600, output_vocab_size=10_048
            ).to_dict(),
            coarse_acoustics_config=transformers.BarkCoarseConfig(
                **sizes, input_vocab_size=12_096, output_vocab_size=12_096
            ).to_dict(),
            fine_acoustics_config=transformers.BarkFineConfig(
                **sizes, input_vocab_size=1_056, output_vocab_size=1_056
            ).to_dict(),
            codec_config=transformers.EncodecConfig(
                num_filters=2, hidden_size=8, codebook_dim=8, num_lstm_layers=1
            ).to_dict(),
        )
    )
    settings = BarkGenerationConfig.from_sub_model_configs(
        BarkSemanticGenerationConfig(max_new_tokens=24), BarkCoarseGenerationConfig(), BarkFineGenerationConfig()
    )
    draw_weights(model, 0.3)
    model.save_pretrained(folder)
    # The class cannot save what it is given; repos hold the file as it was written by hand.
    (folder / "generation_config.json").write_text(json.dumps(settings.to_dict()))
    dice = np.random.default_rng(7)
    paths: dict[str, dict[str, str]] = {}
    for name in ("v2/en_speaker_0", "v2/en_speaker_1"):
        shapes = {"semantic_prompt": (20,), "coarse_prompt": (2, 30), "fine_prompt": (8, 30)}
        paths[name] = {part: f"speaker_embeddings/{name}_{part}.npy" for part in shapes}
        for part, shape in shapes.items():
            (folder / paths[name][part]).parent.mkdir(parents=True, exist_ok=True)
            np.save(folder / paths[name][part], dice.integers(0, 1_000, shape), allow_pickle=False)
    (folder / "speaker_embeddings_path.json").write_text(json.dumps({"repo_or_path": "someone/else", **paths}))
    return folder


def csm(folder: Path) -> Path:
    """A CSM of one layer, with a tiny Mimi inside."""
    special = ["<|pad|>", "<|begin|>", "<|end|>", "<|AUDIO|>", "<|audio_eos|>"]
    number, fast = make_byte_tokenizer(special, pad_token="<|pad|>", bos_token="<|begin|>", eos_token="<|end|>")
    fast.add_tokens(special, special_tokens=True)
    transformers.CsmProcessor(transformers.EncodecFeatureExtractor(sampling_rate=24_000), fast).save_pretrained(folder)
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "num_hidden_layers": 1}
    sizes: dict[str, Any] = {**heads, "hidden_size": 16, "intermediate_size": 32}
    codes = {"num_codebooks": 4, "vocab_size": 67}
    mimi = transformers.MimiConfig(
        num_filters=2,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=8,
        codebook_size=64,
        codebook_dim=8,
        vector_quantization_hidden_dimension=8,
        num_quantizers=4,
        upsample_groups=16,
    )
    torch.manual_seed(8)
    model = transformers.CsmForConditionalGeneration(
        transformers.CsmConfig(
            **sizes,
            **codes,
            text_vocab_size=len(fast),
            max_position_embeddings=1024,
            codebook_pad_token_id=66,
            codebook_eos_token_id=0,
            audio_token_id=number["<|AUDIO|>"],
            audio_eos_token_id=number["<|audio_eos|>"],
            bos_token_id=number["<|begin|>"],
            pad_token_id=0,
            depth_decoder_config=transformers.CsmDepthDecoderConfig(
                **sizes, **codes, backbone_hidden_size=16, max_position_embeddings=5
            ).to_dict(),
            codec_config=mimi.to_dict(),
        )
    )
    draw_weights(model, 0.3)
    # A trained one does not draw marks where codes belong.
    sampling = {"do_sample": True, "temperature": 0.9, "suppress_tokens": [64, 65, 66]}
    model.generation_config = transformers.GenerationConfig(**sampling, max_new_tokens=10)
    model.depth_decoder.generation_config = transformers.GenerationConfig(**sampling)
    model.save_pretrained(folder)
    return folder


VIBEVOICE_TEMPLATE = (
    "Say it:{% for m in messages %}{% for c in m.content %}{% if c.type == 'audio' %} voice {{ m.role }}:"
    "<|vision_start|><|vision_pad|><|vision_end|>{% endif %}{% endfor %}{% endfor %}{% for m in messages %}"
    "{% for c in m.content %}{% if c.type == 'text' %} {{ m.role }}: {{ c.text }}{% endif %}{% endfor %}{% endfor %}"
    "<|vision_start|>"
)


def vibevoice(folder: Path) -> Path:
    """A VibeVoice of one layer in each of its parts."""
    special = ["<|pad|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>"]
    _, fast = make_byte_tokenizer(special, pad_token="<|pad|>", eos_token="<|pad|>")
    fast.add_tokens(special, special_tokens=True)
    extractor = transformers.VibeVoiceAcousticTokenizerFeatureExtractor()
    transformers.VibeVoiceProcessor(extractor, fast, chat_template=VIBEVOICE_TEMPLATE).save_pretrained(folder)
    hears = {"num_filters": 2, "depths": [1] * 7, "ffn_expansion": 1}
    torch.manual_seed(9)
    model = transformers.VibeVoiceForConditionalGeneration(
        transformers.VibeVoiceConfig(
            audio_config={"model_type": "vibevoice_acoustic_tokenizer", "hidden_size": 8, **hears},
            semantic_model_config={
                "model_type": "vibevoice_acoustic_tokenizer_encoder",
                "hidden_size": 8,
                **hears,
            },
            text_config={
                "model_type": "qwen2",
                "vocab_size": len(fast),
                "hidden_size": 16,
                "intermediate_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "num_key_value_heads": 2,
                "max_position_embeddings": 512,
            },
            diffusion_head_config={"num_hidden_layers": 1, "intermediate_size": 16},
            pad_token_id=0,
            eos_token_id=0,
            audio_bos_token_id=1,
            audio_eos_token_id=2,
            audio_token_id=3,
        )
    )
    draw_weights(model, 0.3)
    # A trained one does not end before it has begun.
    limits = {"max_new_tokens": 6, "suppress_tokens": [0, 1, 2]}
    model.generation_config = transformers.GenerationConfig(**limits, eos_token_id=0, pad_token_id=0, bos_token_id=1)
    model.save_pretrained(folder)
    return folder


def causal_lm(folder: Path) -> Path:
    """A Llama that knows ASCII, with a chat template; it samples."""
    special = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "<think>", "</think>"]
    vocabulary, fast = make_byte_tokenizer(
        special,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        additional_special_tokens=special[2:],
        chat_template=CHAT_TEMPLATE,
    )
    fast.save_pretrained(folder)
    torch.manual_seed(3)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=512,
            initializer_range=0.4,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=None,
        )
    )
    # Never a special token but the end, and that seldom: what it writes is letters.
    with torch.no_grad():
        model.lm_head.weight[[0, 2, 3, 4, 5, 6]] = 0.0
    quiet = {"pad_token_id": 0, "eos_token_id": 1, "suppress_tokens": [0, 2, 3, 4, 5, 6]}
    model.generation_config = transformers.GenerationConfig(
        **quiet, do_sample=True, temperature=0.9, top_p=0.95, max_new_tokens=40
    )
    model.save_pretrained(folder)
    return folder


def lora(folder: Path, base: Path) -> Path:
    """A LoRA adapter on that model; its config names a base of its own choosing."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(4)
    model = get_peft_model(
        transformers.AutoModelForCausalLM.from_pretrained(base),
        LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False, task_type="CAUSAL_LM"),
    )
    model.save_pretrained(folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": "someone/else"}))
    (folder / "README.md").unlink(missing_ok=True)
    return folder


def cascade(folder: Path, whisper: Any) -> Path:
    """A transcriber, a language model and a voice in one repo."""
    whisper(folder / "transcriber")
    causal_lm(folder / "language_model")
    vits(folder / "speech")
    (folder / "cascade.json").write_text(json.dumps({"system_prompt": "Answer in one sentence."}))
    return folder


OMNI_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% for part in message.content %}"
    "{% if part.type == 'audio' %}<|audio_start|><|audio_pad|><|audio_end|>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def omni(folder: Path) -> Path:
    """A Qwen3-Omni of a layer or two in each of its parts."""
    media = ("image", "audio", "video")
    marks = ["pad", "im_start", "im_end", *(f"{kind}_pad" for kind in media), "tts_pad", "tts_bos", "tts_eos"]
    marks += [f"{kind}_{end}" for kind in ("vision", "audio") for end in ("start", "end")]
    special = [*(f"<|{mark}|>" for mark in marks), "system", "user", "assistant"]
    number, fast = make_byte_tokenizer(special, pad_token="<|pad|>", eos_token="<|im_end|>")
    fast.add_tokens(special, special_tokens=True)
    fast.chat_template = OMNI_TEMPLATE
    fast.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=16).save_pretrained(folder)
    ids = {f"{mark}_token_id": number[f"<|{mark}|>"] for mark in marks}
    pads = {f"{kind}_token_id": ids[f"{kind}_pad_token_id"] for kind in media}
    starts = {name: ids[name] for name in ("vision_start_token_id", "audio_start_token_id")}
    ends = {name: ids[name] for name in ("vision_end_token_id", "audio_end_token_id")}
    roles = {f"{role}_token_id": number[role] for role in ("system", "user", "assistant")}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    layers = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, **heads}
    experts = {"moe_intermediate_size": 16, "num_experts_per_tok": 1, "num_experts": 2}
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3], "mrope_interleaved": True}
    text = {**layers, **experts, "max_position_embeddings": 512, "rope_parameters": rope, "initializer_range": 0.4}
    hears = {"num_mel_bins": 16, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32}
    sees = {"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32}
    config = transformers.Qwen3OmniMoeConfig(
        thinker_config={
            "audio_config": {**hears, "d_model": 32, "output_dim": 32, "downsample_hidden_size": 8},
            "vision_config": {**sees, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]},
            "text_config": {"vocab_size": len(fast), **text},
            "user_token_id": number["user"],
            **pads,
            **starts,
            **ends,
        },
        talker_config={
            "text_config": {"vocab_size": 1100, **text, "shared_expert_intermediate_size": 16},
            "code_predictor_config": {"vocab_size": 64, "head_dim": 16, "num_code_groups": 4, **layers},
            "num_code_groups": 4,
            "spatial_merge_size": 2,
            "thinker_hidden_size": 32,
            "accept_hidden_layer": 1,
            "speaker_id": {"ethan": 70},
            **{f"codec_{name}_id": 72 + place for place, name in enumerate(("nothink", "think_bos", "think_eos"))},
            **{f"codec_{name}_id": 75 + place for place, name in enumerate(("pad", "bos", "eos_token"))},
            **pads,
            **starts,
        },
        code2wav_config={
            "codebook_size": 64,
            "num_quantizers": 4,
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_hidden_layers": 1,
            "decoder_dim": 32,
            "sliding_window": 16,
            **heads,
        },
        **{name: ids[name] for name in ids if name.startswith(("im_st", "im_end", "tts"))},
        **roles,
    )
    torch.manual_seed(5)
    model = transformers.Qwen3OmniMoeForConditionalGeneration(config)
    with torch.no_grad():
        for name, weights in sorted(model.named_parameters()):  # some of them are left as memory was
            if weights.ndim > 1:
                weights.normal_(std=0.4 if name.startswith("thinker") else 0.2)
            else:
                weights.fill_(0.0 if name.endswith("bias") else 1.0)
    model.save_pretrained(folder)
    return folder


POCKET_TEMPLATE = (
    "{% for m in messages %}{% for c in m.content %}{% if c.type == 'audio' %}VOICE_BOS<|audio_prompt|>{% endif %}"
    "{% endfor %}{% for c in m.content %}{% if c.type == 'text' %}{{ c.text }}{% endif %}{% endfor %}<|audio_bos|>"
    "{% endfor %}"
)


def pocket_tts(folder: Path, *, phonon: bool = False) -> Path:
    """A Pocket TTS, or a Gradium Phonon with some voices, of one layer, with its codec beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    marks = {"audio_prompt_token": "<|audio_prompt|>", "audio_latent_token": "<|audio_latent|>"}
    marks |= {"audio_bos_token": "<|audio_bos|>"} | ({} if phonon else {"audio_prompt_bos_token": "<|voice|>"})
    special = ["<|pad|>", *marks.values()]
    number, fast = make_byte_tokenizer(special, pad_token="<|pad|>", padding_side="left", extra_special_tokens=marks)
    fast.save_pretrained(folder)
    transformers.PocketTTSFeatureExtractor(frame_size=960, pad_to_multiple_of=960).save_pretrained(folder)
    template = POCKET_TEMPLATE.replace("VOICE_BOS", "" if phonon else "<|voice|>")
    (folder / "chat_template.jinja").write_text(template)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    ids = {name.replace("token", "token_id"): number[token] for name, token in marks.items()}
    kinds: Any = (
        transformers.PocketTTSConfig,
        transformers.PocketTTSFlowHeadConfig,
        transformers.PocketTTSForConditionalGeneration,
    )
    if phonon:
        kinds = (
            transformers.GradiumPhononTTSConfig,
            transformers.GradiumPhononTTSFlowHeadConfig,
            transformers.GradiumPhononTTSForConditionalGeneration,
        )
    head = kinds[1](
        hidden_size=16, num_hidden_layers=1, latent_dim=8, condition_dim=16, frequency_embedding_size=16
    ).to_dict()
    more = {"audio_prompt_dim": 12, "duration_delta_embedding_dim": 8} if phonon else {}
    config = kinds[0](
        **sizes,
        **ids,
        **more,
        flow_head_config=head,
        latent_dim=8,
        vocab_size=len(fast),
        pad_token_id=0,
        frame_rate=25.0,
    )
    torch.manual_seed(10)
    model = kinds[2](config)
    draw_weights(model, 0.3)
    # As a trained one: it ends after a while, and not before it has begun.
    model.generation_config = transformers.GenerationConfig(
        do_sample=True, temperature=0.7, max_new_tokens=20, return_dict_in_generate=True
    )
    model.generation_config.eos_threshold = 1e9
    model.save_pretrained(folder)
    if phonon:
        (folder / "voices").mkdir()
        for place in range(2):
            save_file({"latents": torch.randn(5, 12)}, folder / "voices" / f"voice_{place}.safetensors")
    torch.manual_seed(11)
    codec = transformers.PocketTTSAudioTokenizerModel(
        transformers.PocketTTSAudioTokenizerConfig(
            hidden_size=16,
            num_filters=2,
            upsampling_ratios=[6, 5, 4],
            upsample_groups=16,
            latent_stride=8,
            latent_dim=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            intermediate_size=16,
        )
    )
    draw_weights(codec, 0.3)
    codec.save_pretrained(folder / "audio_tokenizer")
    return folder
