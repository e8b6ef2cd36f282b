"""Metrics of scripts and texts that are counted or embedded."""
