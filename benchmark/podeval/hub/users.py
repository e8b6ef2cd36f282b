"""Accounts of the Hub: the id behind a name, which stays when the name changes and which signing in proves."""

from typing import TYPE_CHECKING
from urllib.parse import quote

from podeval.errors import BadInput
from podeval.hub.retry import call_with_retries

if TYPE_CHECKING:
    from huggingface_hub import HfApi


def find_user_id(name: str, api: "HfApi | None" = None) -> str | None:
    """Return the id of an account by its name, from the Hub's public API; None if there is no such account.

    Raises:
        HubUnavailable: the Hub does not answer.
        BadInput: the answer is not one that podeval understands.
    """
    from huggingface_hub import HfApi, get_session
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]

    endpoint = (api or HfApi()).endpoint

    def ask() -> object:
        response = get_session().get(f"{endpoint}/api/users/{quote(name, safe='')}/overview")
        hf_raise_for_status(response)
        return response.json()

    try:
        answer = call_with_retries(ask)
    except HfHubHTTPError as error:
        if error.response is not None and error.response.status_code == 404:
            return None
        raise BadInput(f"the Hub does not say who {name} is ({error}); name the account's id as hf:ID") from None
    id = answer.get("_id") if isinstance(answer, dict) else None
    if not isinstance(id, str) or not id:
        raise BadInput(f"the Hub does not give the id of {name}; write hf:ID, which whoami shows to its owner")
    return id
