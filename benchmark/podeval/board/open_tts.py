"""Results on long-form speech and dialogue in the columns that Hugging Face's Open TTS Leaderboard takes.

Its maintainers named model, dataset, cloned or fixed voice, WER, SIM and RTFx in September 2026; its scripts, and so
the exact names, are not public. `--preset open-tts` measures as it does. What it lacks comes after: language, items,
interval and protocol, without which no two rows can be compared.
"""

import json
from pathlib import Path

import pandas as pd

from podeval.files import write_whole
from podeval.text.table_files import make_csv_safe

_PLACE = ["system_title", "benchmark", "split", "profile", "slice"]


def write_columns(board: pd.DataFrame, folder: Path) -> str:
    """Write a row for each system, split, profile, language and protocol of its errors; returns a sentence on the file.

    `wer` is the word error rate in percent, in Chinese the character error rate; `sim` is a cosine from −1 to 1; `rtfx`
    is seconds of speech per second of work. A value that was not measured is empty.

    Args:
        board: the rows of the board.
        folder: folder to write `open-tts.csv` to.
    """
    measured = board[(board["profile"] != "paper") & board["value"].notna() & board["slice"].str.match("$|language=")]
    errors = measured[(measured["metric"] == "wer") & measured["key"].isin(("wer", "cer"))]
    table = errors.sort_values([*_PLACE, "key"], ascending=[True] * 5 + [False]).drop_duplicates([*_PLACE, "protocol"])
    for name in ("sim", "rtf"):
        values = measured[(measured["metric"] == name) & (measured["key"] == name)].drop_duplicates(_PLACE)
        table = table.join(values.set_index(_PLACE)["value"].rename(name), on=_PLACE)
    voices = [json.loads(text).get("generation", {}).get("voices") for text in table["protocol_json"]]
    columns = {
        "model": table["system_title"],
        "dataset": table["benchmark"] + "/" + table["split"],
        "voice": ["cloned" if each == "given" else "fixed" for each in voices],
        "wer": 100 * table["value"],
        "sim": table["sim"],
        "rtfx": 1 / table["rtf"],
        "language": table["slice"].str.removeprefix("language="),
        "items": table["scored"].astype("Int64"),
        "wer_low": 100 * table["low"],
        "wer_high": 100 * table["high"],
        "rate": table["key"],
        "protocol": table["protocol"],
    }
    file = folder / "open-tts.csv"
    write_whole(file, make_csv_safe(pd.DataFrame(columns)).to_csv(index=False).encode())
    return f"{file}: {len(table)} rows"
