"""Human likeness as a module of `evaluate`; the code is in the package podeval."""

from podeval.measuring.evaluate_module import module  # From: podeval[embedded]

HumanLikeness = module("human_likeness")
