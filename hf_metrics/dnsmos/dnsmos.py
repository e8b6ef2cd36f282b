"""DNSMOS as a module of `evaluate`; the code is in the package podeval."""

import podeval  # noqa: F401
from podeval.evaluate_module import module

Dnsmos = module("dnsmos")
