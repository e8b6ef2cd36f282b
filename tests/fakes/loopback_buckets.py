"""Storage buckets of a Hub on loopback: made, listed, read and emptied as the real client does where it has no Xet."""

import json
from dataclasses import dataclass, field
from typing import Any

Found = tuple[int, bytes, dict[str, str]]


@dataclass
class LoopbackBuckets:
    """Files by path, by bucket; who may read or make one has a token."""

    buckets: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def answer(self, method: str, parts: list[str], headers: Any, body: bytes) -> Found | None:
        """Status, body and headers of the answer to `/api/buckets/…` and `/buckets/…`; None for anything else."""
        api = parts[:2] == ["api", "buckets"]
        if not api and parts[:1] != ["buckets"]:
            return None
        if not headers.get("Authorization"):
            return _json({"error": "a token is needed"}, 401)
        rest = parts[2:] if api else parts[1:]
        name = "/".join(rest[:2])
        if (method, api, len(rest)) == ("POST", True, 2):
            there = name in self.buckets
            self.buckets.setdefault(name, {})
            return _json({"url": f"https://huggingface.co/buckets/{name}"}, 409 if there else 200)
        files = self.buckets.get(name)
        if files is None:
            return _json({"error": "RepoNotFound"}, 404, {"X-Error-Code": "RepoNotFound"})
        match method, rest[2:]:
            case "GET", []:
                about = {"id": name, "private": True, "createdAt": "2026-11-22T00:00:00.000Z"}
                return _json({**about, "size": sum(map(len, files.values())), "totalFiles": len(files)})
            case "GET", ["tree", *path]:
                prefix = "/".join(path)
                return _json([_entry(key, files[key]) for key in sorted(files) if key.startswith(f"{prefix}/")])
            case "POST", ["batch"]:
                for line in body.splitlines():
                    operation = json.loads(line)
                    assert operation["type"] == "deleteFile", "the real client uploads by Xet, which is not played"
                    del files[operation["path"]]
                return _json({"success": True, "processed": len(body.splitlines()), "failed": []})
            case "POST", ["paths-info"]:
                return _json([_entry(key, files[key]) for key in json.loads(body)["paths"] if key in files])
            case (("GET" | "HEAD"), ["resolve", *path]) if "/".join(path) in files:
                return _content(files["/".join(path)], headers.get("Range"))
        return _json({"error": "EntryNotFound"}, 404, {"X-Error-Code": "EntryNotFound"})


def _entry(path: str, content: bytes) -> dict[str, Any]:
    return {"type": "file", "path": path, "size": len(content), "xetHash": "0" * 64, "mtime": None, "uploadedAt": None}


def _content(content: bytes, asked: str | None) -> Found:
    if not asked:
        return 200, content, {"ETag": f'"{len(content)}"'}
    first, _, last = asked.removeprefix("bytes=").partition("-")
    end = min(int(last), len(content) - 1) if last else len(content) - 1
    about = {"Content-Range": f"bytes {first}-{end}/{len(content)}"}
    return 206, content[int(first) : end + 1], about


def _json(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> Found:
    return status, json.dumps(data).encode(), {"Content-Type": "application/json", **(headers or {})}
