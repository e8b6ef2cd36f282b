"""Count tokens with a tokenizer of one's own, from its `tokenizer.json`."""

from collections.abc import Callable
from pathlib import Path

from podeval.errors import BadInput, ModelMissing


def make_token_counter(path: Path) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text, without those that a tokenizer adds around it.

    Raises:
        BadInput: the file is not a tokenizer.
        ModelMissing: the library that reads it is not installed.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ModelMissing("--tokenizer needs tokenizers; run `pip install 'podeval[construction]'`") from None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain exceptions for whatever it cannot read
        raise BadInput(f"{path} is not a readable tokenizer.json ({error})") from None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
