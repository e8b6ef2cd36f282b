"""A program: a tiny MS-CLAP built by its package's own code, published as its checkpoint is, and what it answers.

Run in a process that has the reference packages: `REFERENCES FOLDER` in `sys.argv`. Writes to the folder:
`hub/msclap` and `hub/gpt2` (what the Hub has of the real one), `sound.npy` (stereo, 44.1 kHz, 9 s), `answers.npz`
(the package's embeddings of clips and texts) and `pam.json` (PAM's formula on them, every way).
"""

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2Model, PreTrainedTokenizerFast

CLIP = 7 * 44_100
PROMPTS = (
    "the sound is clear and clean.",
    "the sound quality is good.",
    "the sound is noisy and with artifacts.",
    "the sound quality is bad.",
)
OTHERS = ("wow! it sounds so good!", "!", "a prompt of some more words than the others have, to need no padding " * 3)


def tokenizer(path: Path) -> Any:
    """Byte pairs with a few merges; as in GPT-2, `!` is the first token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("o", "u"), ("Ġ", "the")]
    names = [*alphabet, *("".join(pair) for pair in merges)]
    made = Tokenizer(models.BPE(vocab={name: number for number, name in enumerate(names)}, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|endoftext|>"])
    made.save(str(path))
    read = PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token="<|endoftext|>")
    read.add_special_tokens({"pad_token": "!"})
    return read


def clap(gpt2: Path) -> Any:
    """The package's model with a small Swin transformer and random weights."""
    from msclap.models import config
    from msclap.models.clap import CLAP
    from msclap.models.htsat import HTSAT_Swin_Transformer

    GPT2Model(GPT2Config(vocab_size=300, n_positions=512, n_embd=24, n_layer=2, n_head=3)).save_pretrained(gpt2)
    model = CLAP("HTSAT", 44_100, 1024, 320, 64, 50, 8000, 527, 64, str(gpt2), 24, 32)
    model.audio_encoder.base.htsat = HTSAT_Swin_Transformer(
        embed_dim=8, depths=[2, 2, 2, 2], num_heads=[1, 2, 2, 4], config=config
    )
    return model


def shake(model: Any) -> None:
    """Random weights of a size at which every one of them matters."""
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "extractor" not in name and name != "logit_scale":
                kept = 1.0 if "norm" in name and name.endswith("weight") else 0.3
                weights.copy_(kept * weights + 0.15 * torch.randn_like(weights))
        htsat = model.audio_encoder.base.htsat
        htsat.bn0.running_mean.normal_(-20, 2)
        htsat.bn0.running_var.uniform_(50, 100)
        # Filters of its own, as a checkpoint may hold.
        htsat.logmel_extractor.melW.mul_(torch.rand(64) + 0.5)
        model.logit_scale.fill_(3.7)


def embed_text(model: Any, read: Any, texts: tuple[str, ...]) -> Any:
    found = []
    for text in texts:
        tokens = read(text + " <|endoftext|>", max_length=77, padding="max_length", return_tensors="pt")
        found.append(model.caption_encoder({key: tokens[key] for key in ("input_ids", "attention_mask")}))
    return torch.nn.functional.normalize(torch.cat(found))


def embed_audio(model: Any, clips: list[Any]) -> Any:
    return torch.nn.functional.normalize(model.audio_encoder(torch.from_numpy(np.stack(clips)))[0])


def chunks(sound: Any) -> list[Any]:
    if len(sound) <= CLIP:
        return [np.tile(sound, -(-CLIP // len(sound)))[:CLIP]]
    whole = [sound[i * CLIP : (i + 1) * CLIP] for i in range(len(sound) // CLIP)]
    return whole + ([sound[-CLIP:]] if len(sound) % CLIP else [])


def pam(logits: Any, pairs: tuple[tuple[int, int], ...]) -> float:
    return float(np.mean([torch.softmax(logits[:, [good, bad]], dim=1)[:, 0].mean().item() for good, bad in pairs]))


def ways(model: Any, sound: Any, said: Any) -> dict[str, list[float]]:
    """Of every variant PAM, its mean over the crossed pairs, and that of mean similarities."""
    scale = float(model.logit_scale.exp())

    def score(heard: Any, factor: float) -> list[float]:
        logits = factor * heard @ said.T
        merged = torch.stack([logits[:, :2].mean(1), logits[:, 2:].mean(1)], dim=1)
        return [pam(logits, ((0, 2),)), pam(logits, ((0, 3), (1, 2))), pam(merged, ((0, 1),))]

    mixed = embed_audio(model, chunks(sound.mean(axis=1)))
    joined = embed_audio(model, chunks(np.concatenate(list(sound.T))))
    first = embed_audio(model, chunks(sound.mean(axis=1))[:1])
    return {
        "default": score(mixed, scale),
        "paper": score(mixed, 1.0),
        "repro": score(first, scale),
        "msclap": score(joined, scale),
        "pcc": score(joined[:1], scale),
        "naive": [(mixed @ said[0]).mean().item()],
        "short": score(embed_audio(model, chunks(sound[:100_000, 0])), scale),
    }


def main(references: str, folder: Path) -> None:
    sys.path.insert(0, references)
    # The package's models without what its own front door imports.
    package = types.ModuleType("msclap")
    package.__path__ = [f"{references}/msclap"]
    sys.modules["msclap"] = package
    torch.manual_seed(0)
    hub = folder / "hub"
    (hub / "gpt2").mkdir(parents=True)
    (hub / "msclap").mkdir()
    read = tokenizer(hub / "gpt2" / "tokenizer.json")
    model = clap(hub / "gpt2")
    plain = model.audio_encoder.base.htsat.logmel_extractor.melW.detach().clone()
    shake(model)
    model.eval()
    random = np.random.default_rng(1)
    rise = np.linspace(0, 1, 9 * 44_100)[:, np.newaxis]
    tones = np.sin(np.cumsum(np.stack([300 + 5000 * rise[:, 0], 900 + 9000 * rise[:, 0] ** 2], 1), axis=0) / 7018)
    sound = (0.3 * tones * (1 - rise) + 0.1 * rise**2 * random.normal(size=(len(rise), 2))).astype(np.float32)
    torch.save({"model": model.state_dict(), "epoch": 3}, hub / "msclap" / "CLAP_weights_2023.pth")
    with torch.no_grad():
        heard = embed_audio(model, chunks(sound[:, 0]))
        said = embed_text(model, read, (*PROMPTS, *OTHERS))
        results = ways(model, sound, said[:4])
    np.save(folder / "sound.npy", sound)
    np.savez(folder / "answers.npz", heard=heard, said=said, filters=plain, scale=model.logit_scale.exp().item())
    (folder / "pam.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
