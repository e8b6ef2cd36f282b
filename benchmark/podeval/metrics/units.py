"""Units of metrics as a reader of Chinese says them; what stands in the field as it is, such as LUFS, is not here."""

_ZH = {
    "bits": "比特",
    "points": "分",
    "Elo points": "Elo 分",
    "cosine": "余弦",
    "1 − cosine": "1 − 余弦",
    "speakers": "人",
    "turns": "轮",
    "words": "词",
    "% of words": "词数的 %",
    "s": "秒",
    "s/s": "秒/秒",
    "per second": "每秒",
    "per minute": "每分钟",
    "per hour": "每小时",
    "per 1000 words": "每千词",
    "per second per 10 min": "每秒，每 10 分钟",
    "semitones": "半音",
    "root of bits": "比特的平方根",
}


def translate_unit(unit: str, language: str) -> str:
    """Return a unit in a language of the site."""
    return _ZH.get(unit, unit) if language == "zh" else unit
