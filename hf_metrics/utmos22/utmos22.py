"""UTMOS22 as a module of `evaluate`; the code is in the package podeval."""

from podeval.measuring.evaluate_module import module  # From: podeval[reference]

Utmos22 = module("utmos22")
