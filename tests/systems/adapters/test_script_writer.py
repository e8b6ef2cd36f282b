import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.systems.adapters import script_writer
from podeval.systems.adapters.loading import derive_seed
from podeval.systems.adapters.presets import get_preset
from podeval.systems.speech import SpeechFailed

PROMPTS = ("Write a show about salt.", "Two hosts, on bread and water.", "The sea.")
ASKS = [{"id": f"p{number}", "prompt": text} for number, text in enumerate(PROMPTS)]
CHAT = [{"role": "user", "content": PROMPTS[0]}]


@pytest.fixture(scope="module")
def model(fetched: Any) -> script_writer.LanguageModel:
    return script_writer.LanguageModel(fetched("lm"), None, "cpu", get_preset("default"))


def written(out: Path, name: str | None) -> str:
    return str(json.loads((out / name).read_text())["text"])


def test_an_item_is_the_same_alone_and_among_others(run: Any, fetched: Any, tmp_path: Path) -> None:
    run("script-writer", fetched("lm"), ASKS, batch=3, out_folder="three")
    three = {a["id"]: written(tmp_path / "three", f"{a['id']}.0.json") for a in ASKS}
    run("script-writer", fetched("lm"), ASKS[::-1], batch=1)
    one = {a["id"]: written(tmp_path / "out", f"{a['id']}.0.json") for a in ASKS}
    assert one == three
    assert len(set(one.values())) == 3


def test_seeds_differ_and_repeat(model: script_writer.LanguageModel) -> None:
    first, second, again = (model.answers([CHAT], [seed])[0]["text"] for seed in (1, 2, 1))
    assert first == again
    assert first != second


def test_draws_by_row_have_the_model_s_probabilities() -> None:
    """4,000 draws against softmax of the logits at temperature 2, of the two most probable tokens: within 3 sigma."""
    import torch
    from transformers import GenerationConfig

    logits = torch.tensor([[2.0, 1.0, 0.0]])
    config = GenerationConfig(do_sample=True, temperature=2.0, top_k=2)
    counts: Counter[int] = Counter()
    changed, processors = script_writer.draw_row_by_row(config, [derive_seed(7)])
    assert not changed.do_sample
    for _ in range(4_000):
        counts[int(processors(None, logits).argmax())] += 1
    expected = 1 / (1 + 2.718281828 ** (-0.5))
    assert abs(counts[0] / 4_000 - expected) < 3 * (expected * (1 - expected) / 4_000) ** 0.5
    assert counts[2] == 0


def test_the_chat_goes_through_the_model_s_own_template(model: script_writer.LanguageModel) -> None:
    assert model.render_chat(CHAT) == f"<|user|>{PROMPTS[0]}<|end|><|assistant|>"


@pytest.mark.parametrize(("name", "end"), [("podbench", ""), ("podbench-direct", "<think></think>")])
def test_a_preset_tells_a_hybrid_model_whether_to_think(fetched: Any, name: str, end: str) -> None:
    model = script_writer.LanguageModel(fetched("lm"), None, "cpu", get_preset(name))
    assert model.render_chat(CHAT).endswith(f"<|assistant|>{end}")
    assert model.config.max_new_tokens == 16_384


def answer(model: script_writer.LanguageModel, text: str) -> dict[str, Any]:
    return model.read_answer(model.tokenizer(text, add_special_tokens=False)["input_ids"], 5)


def test_thoughts_are_dropped(model: script_writer.LanguageModel) -> None:
    found = answer(model, "<think>Hmm, salt.</think>Host 1: Hello.\nHost 2: Hi.<|end|>left over")
    assert found["text"] == "Host 1: Hello.\nHost 2: Hi."
    assert found["whole"]


def test_thoughts_without_end_are_no_script(model: script_writer.LanguageModel) -> None:
    with pytest.raises(SpeechFailed, match="still thinking after"):
        answer(model, "<think>Hmm, salt. Or bread")


def test_an_answer_that_was_cut_off_says_so(model: script_writer.LanguageModel) -> None:
    assert not answer(model, "Host 1: Hel")["whole"]


def test_a_request_beyond_the_window_fails_and_is_not_cut(run: Any, fetched: Any, tmp_path: Path) -> None:
    long = {"id": "long", "prompt": "salt " * 200}
    made = run("script-writer", fetched("lm"), [ASKS[0], long], batch=2)
    assert "window is 512; podeval never shortens a text" in made["long"].error
    assert made["long"].cause == "system"
    assert made["p0"].script


def test_near_the_end_of_the_window_a_neighbour_cuts_nothing_short(model: script_writer.LanguageModel) -> None:
    close = [{"role": "user", "content": "s" * 470}]
    together = model.answers([CHAT, close], [1, 2])
    assert together == [model.answers([CHAT], [1])[0], model.answers([close], [2])[0]]
    assert together[1]["tokens"] <= 512 - 470


def test_a_lora_adapter_changes_what_its_base_writes(run: Any, fetched: Any, tmp_path: Path) -> None:
    base = written(tmp_path / "out", run("script-writer", fetched("lm"), ASKS[:1])["p0"].script)
    run("script-writer", fetched("lora"), ASKS[:1], base_folder=str(fetched("lm")), out_folder="lora")
    assert written(tmp_path / "lora", "p0.0.json") != base


def test_a_merged_lora_is_what_peft_computes(fetched: Any) -> None:
    """Logits against the adapter unmerged, as peft applies it; float32 rounding."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    merged = script_writer.LanguageModel(fetched("lora"), fetched("lm"), "cpu", get_preset("default"))
    apart = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(fetched("lm")), fetched("lora")).eval()
    tokens = torch.arange(10, 40)[None]
    with torch.inference_mode():
        difference = merged.network(tokens).logits - apart(tokens).logits
    assert float(difference.abs().max()) < 1e-4


def test_a_model_that_cannot_be_loaded_is_a_sentence(tmp_path: Path, tiny: Any) -> None:
    folder = tiny.causal_lm(tmp_path / "broken")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(BadInput, match="broken cannot be loaded"):
        script_writer.LanguageModel(folder, None, "cpu", get_preset("default"))
