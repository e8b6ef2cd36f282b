"""The neural networks that measurements need: one interface per job, one file per implementation, one registry."""

__all__ = [
    "card",
    "chat",
    "chat_endpoint",
    "chat_providers",
    "chat_transformers",
    "device",
    "downloading",
    "exported",
    "http_errors",
    "interfaces",
    "pretrained",
    "profiles",
    "registry",
    "weights",
    "whisper_transformers",
]
