"""Metrics made of what people said: votes, marks and answers."""
