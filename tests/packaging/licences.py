"""The licences of what is installed, by an SBOM: `python tests/packaging/licences.py sbom.json`, one line each.

Ends with 1 where a package that `pip install .` or the image brings is under a strong copyleft alone.
"""

import json
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]

STRONG = ("AGPL", "GPL", "SSPL")
"""Licences that ask more of who passes on a whole; LGPL and MPL ask it of their own part only."""


def licence(component: dict[str, Any]) -> str:
    """What a component of the SBOM states, as far as it is a name; else what its package's classifiers say."""
    said = []
    for each in component.get("licenses", ()):
        named = each.get("expression") or each.get("license", {}).get("id") or each.get("license", {}).get("name") or ""
        if named and len(named) < 80 and "declared license file" not in named:
            said.append(named.removeprefix("License :: OSI Approved :: ").removeprefix("License :: "))
    if said:
        return " / ".join(dict.fromkeys(said))
    try:
        told = metadata.metadata(component["name"])
    except metadata.PackageNotFoundError:
        return "not stated"
    named = [line for line in told.get_all("Classifier") or () if line.startswith("License ::")]
    lines = (told.get("License-Expression") or told.get("License") or "").strip().splitlines()
    first = lines[0] if lines else ""
    return " / ".join(line.rpartition(":: ")[2] for line in named) or first[:80] or "not stated"


def by_licence(document: dict[str, Any]) -> dict[str, list[str]]:
    """Names and versions of the components of an SBOM, by licence."""
    found: dict[str, list[str]] = defaultdict(list)
    for component in document["components"]:
        found[licence(component)].append(f"{component['name']} {component.get('version', '')}".strip())
    return {name: sorted(packages, key=str.casefold) for name, packages in sorted(found.items())}


def strong(document: dict[str, Any]) -> list[str]:
    """Components under a strong copyleft alone."""
    return [
        package
        for name, packages in by_licence(document).items()
        if any(mark in name.replace("LGPL", "").replace("Lesser General", "") for mark in (*STRONG, "General Public"))
        for package in packages
    ]


def brought() -> set[str]:
    """Names of the packages that `pip install .` or the image brings, as far as this machine has them."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = _closure(project["dependencies"])
    for lock in ("requirements.lock", "torch.lock", "build.lock"):
        text = (REPOSITORY / "space" / lock).read_text(encoding="utf-8")
        names |= {canonicalize_name(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)}
    return names


def _closure(requirements: Iterable[str]) -> set[str]:
    """The packages that these ask for, and what those ask for, by the metadata of what is installed."""
    extras: dict[str, set[str]] = {}
    waiting = [Requirement(requirement) for requirement in requirements]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        if name in extras and wanted.extras <= extras[name]:
            continue
        extras.setdefault(name, set()).update(wanted.extras)
        for line in metadata.requires(name) or ():
            further = Requirement(line)
            marker, further.marker = further.marker, None
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras[name])):
                waiting.append(further)
    return set(extras)


def components(names: Iterable[str]) -> dict[str, Any]:
    """The packages in the form of an SBOM, without a licence of their own: their metadata are asked."""
    return {"components": [{"name": name} for name in sorted(names)]}


if __name__ == "__main__":
    read = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for licence_name, names in by_licence(read).items():
        print(f"{licence_name}: {', '.join(names)}")
    print(f"\n{len(read['components'])} components; under a strong copyleft: {', '.join(strong(read)) or 'none'}")
    names = brought()
    passed_on = {"components": [each for each in read["components"] if canonicalize_name(each["name"]) in names]}
    print(f"Of these `pip install .` and the image bring: {', '.join(strong(passed_on)) or 'none'}")
    weak = [name for said, packages in by_licence(passed_on).items() if "LGPL" in said for name in packages]
    print(f"Under the LGPL they bring: {', '.join(weak) or 'none'}")
    sys.exit(bool(strong(passed_on)))
