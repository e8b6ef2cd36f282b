"""Storage buckets of a Hub on loopback: made, listed, read and emptied as the real client does where it has no Xet."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.loopback_server import Answer


@dataclass
class LoopbackBuckets:
    """Files by path, by bucket; who may read or make one has a token."""

    buckets: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def answer(self, method: str, parts: list[str], headers: Any, body: bytes) -> Answer | None:
        """The answer to `/api/buckets/…` and `/buckets/…`; None for anything else."""
        api = parts[:2] == ["api", "buckets"]
        if not api and parts[:1] != ["buckets"]:
            return None
        if not headers.get("Authorization"):
            return Answer.json({"error": "a token is needed"}, 401)
        rest = parts[2:] if api else parts[1:]
        name = "/".join(rest[:2])
        if (method, api, len(rest)) == ("POST", True, 2):
            there = name in self.buckets
            self.buckets.setdefault(name, {})
            return Answer.json({"url": f"https://huggingface.co/buckets/{name}"}, 409 if there else 200)
        files = self.buckets.get(name)
        if files is None:
            return Answer.error("RepoNotFound")
        match method, rest[2:]:
            case "GET", []:
                about = {"id": name, "private": True, "createdAt": "2026-11-22T00:00:00.000Z"}
                return Answer.json({**about, "size": sum(map(len, files.values())), "totalFiles": len(files)})
            case "GET", ["tree", *path]:
                prefix = "/".join(path)
                return Answer.json([_entry(key, files[key]) for key in sorted(files) if key.startswith(f"{prefix}/")])
            case "POST", ["batch"]:
                for line in body.splitlines():
                    operation = json.loads(line)
                    assert operation["type"] == "deleteFile", "the real client uploads by Xet, which is not played"
                    del files[operation["path"]]
                return Answer.json({"success": True, "processed": len(body.splitlines()), "failed": []})
            case "POST", ["paths-info"]:
                return Answer.json([_entry(key, files[key]) for key in json.loads(body)["paths"] if key in files])
            case (("GET" | "HEAD"), ["resolve", *path]) if "/".join(path) in files:
                content = files["/".join(path)]
                return Answer.content(content, headers.get("Range"), ETag=f'"{len(content)}"')
        return Answer.error("EntryNotFound")


def _entry(path: str, content: bytes) -> dict[str, Any]:
    return {"type": "file", "path": path, "size": len(content), "xetHash": "0" * 64, "mtime": None, "uploadedAt": None}
