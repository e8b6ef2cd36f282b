"""Metrics based on people's judgements: votes, marks and answers."""
