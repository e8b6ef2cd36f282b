"""The licences of what is installed, by an SBOM: `python tests/packaging/licences.py sbom.json`, one line each."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from importlib import metadata
from pathlib import Path
from typing import Any

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


if __name__ == "__main__":
    read = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for licence_name, names in by_licence(read).items():
        print(f"{licence_name}: {', '.join(names)}")
    print(f"\n{len(read['components'])} components; under a strong copyleft: {', '.join(strong(read)) or 'none'}")
