"""Judges: language and audio models that score; what they are asked, what they answered, and how to read it again."""
