"""The end of a test for a listener: a completion code, and the way back to the panel that sent them.

    completion:
      code: C1A2B3C4            # of the study; left out, every listener gets a code of their own
      screened_out: C9Z8Y7X6    # for listeners whom the headphone check turns away
      panel: prolific           # or an address of another panel, on a host that the design names:
      # address: https://panel.example/end?token={code}
      # hosts: [panel.example]
      seconds: 10

The address is made from the design alone, never from a request, so that no link leads anywhere else.
"""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from podeval.benchmarks.records import FactSheet

PANELS = {"prolific": "https://app.prolific.com/submissions/complete?cc={code}"}
"""Address of each panel to which its listeners return."""

_ADDRESS = r"^https://[!-\[\]-~]+$"

Code = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Host = Annotated[str, Field(pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$", max_length=253)]


class Completion(FactSheet):
    """The end of a test: codes, and the panel to which the listener returns after some seconds."""

    code: Code | None = None
    screened_out: Code | None = None
    panel: Literal["prolific"] | None = None
    address: Annotated[str, Field(pattern=_ADDRESS, max_length=1000)] | None = None
    hosts: tuple[Host, ...] = Field(default=(), max_length=20)
    seconds: Annotated[int, Field(ge=5, le=120)] = 10

    @model_validator(mode="after")
    def _leads_where_it_says(self) -> Self:
        own = f"{self.panel} has an address of its own; name a panel, or an address with its hosts"
        code = f"{self.panel} identifies its listeners by the study's code; give it as code"
        self.refuse_if((self.panel and (self.address or self.hosts), own), (self.panel and self.code is None, code))
        if self.address is None:
            return self
        address = self.address
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise ValueError(f"{address} is not an address") from None
        return self.refuse_if(
            (
                parts.netloc != host or port is not None or host not in self.hosts,
                f"{address} leads to {parts.netloc}, which is not among the hosts that the design names",
            ),
            (
                address.count("{code}") != 1 or address.count("{") != 1 or address.count("}") != 1,
                f"{address} has to hold {{code}} once, and no other braces",
            ),
        )

    def code_for(self, own: str, screened_out: bool) -> str:
        """Return the code that a listener is shown: that of the study, or their own if it has none."""
        return (self.screened_out if screened_out else self.code) or own

    def address_for(self, code: str) -> str | None:
        """Return where the listener goes back to with this code; None if the design names no panel."""
        template = PANELS[self.panel] if self.panel else self.address
        return template.replace("{code}", code) if template else None
