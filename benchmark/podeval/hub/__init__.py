"""The Hub: patient calls, commits that compare before they swap, and the forms in which it keeps results."""
