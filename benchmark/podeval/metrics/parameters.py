"""The parameters of metrics: choices that change values, read from the keywords of a metric's function."""

import inspect
import math
import re
import typing
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from podeval.errors import BadInput

_KINDS = {int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Constraint:
    """Facts on a parameter that its type does not say, given as `Annotated[float, Constraint(…)]`.

    Attributes:
        least: smallest value of a number; None where any will do.
        added: whether it came after values were published: protocols then state it only if it is not at its default.
    """

    least: float | None = None
    added: bool = False


@dataclass(frozen=True)
class Parameter:
    """A choice of a metric that changes its values."""

    name: str
    default: Any
    choices: tuple[Any, ...]
    kind: type
    about: str
    constraint: Constraint = Constraint()

    def read(self, value: Any) -> Any:
        """Read a value from text or data and check it.

        Raises:
            BadInput: the value is not one of the choices, or not of the parameter's kind.
        """
        if self.choices:
            if value not in self.choices:
                raise BadInput(f"{self.name} must be one of {', '.join(map(str, self.choices))}, not {value!r}")
            return value
        if self.kind is bool and isinstance(value, str):
            if value.lower() not in ("true", "false"):
                raise BadInput(f"{self.name} must be true or false, not {value!r}")
            return value.lower() == "true"
        try:
            read = self.kind(value)
        except (TypeError, ValueError, OverflowError):
            read = None
        if read is None or (isinstance(value, float) and read != value):
            raise BadInput(f"{self.name} must be {_KINDS.get(self.kind, self.kind.__name__)}, not {value!r}")
        if isinstance(read, float) and not math.isfinite(read):
            raise BadInput(f"{self.name} must be a finite number, not {value!r}")
        if self.constraint.least is not None and read < self.constraint.least:
            raise BadInput(f"{self.name} must be {self.constraint.least:g} or more, not {value!r}")
        return read


def describe_parameter(parameter: inspect.Parameter, hint: Any, about: str) -> Parameter:
    """Return the declaration of a keyword of a metric's function, by its type hint."""
    hint, *constraints = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
    choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
    kind = type(choices[0]) if choices else hint
    return Parameter(parameter.name, parameter.default, choices, kind, about, *constraints)


def read_arguments(docstring: str) -> dict[str, str]:
    """Read the descriptions in a docstring's `Args` section, by argument."""
    section = re.search(r"^Args:\n((?:[ ]+.*\n?|\n)+)", docstring, flags=re.MULTILINE)
    lines = section.group(1) if section else ""
    entries = re.findall(r"^ {4}(\w+): ((?:.*)(?:\n {8}.*)*)", lines, flags=re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text).strip() for name, text in entries}
