"""Metrics from people's judgements: votes, marks and answers."""
