"""Systems behind a server: OpenAI-compatible speech, whole or streamed, and chat completions in words or in sound."""
