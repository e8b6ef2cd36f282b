"""Repos of a Hub on loopback that can be written to: create, commit (with LFS), list, read; as the real client asks."""

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.fakes.loopback_buckets import LoopbackBuckets
from tests.fakes.loopback_jobs import LoopbackJobs
from tests.fakes.loopback_server import Answer

KINDS = {"models": "", "datasets": "datasets/", "spaces": "spaces/"}


@dataclass
class Repo:
    """Files by commit; `main` is the newest."""

    kind: str
    id: str
    private: bool = False
    gated: bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    lfs: dict[str, set[str]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    """Commits of main, oldest first."""
    proposals: dict[int, str] = field(default_factory=dict)
    """Titles of pull requests by number; their files are at `refs/pr/<number>`."""
    closed: set[int] = field(default_factory=set)
    """Numbers of pull requests that were closed."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Of a Space that was duplicated: hardware, secrets, variables and volumes, as they were asked for."""

    def propose(self, files: dict[str, bytes], title: str = "") -> str:
        """Make a commit as a pull request; its id."""
        number = len(self.proposals) + 1
        sha = hashlib.sha1(f"pull {number} {title} {sorted(files)}".encode()).hexdigest()
        self.commits[sha], self.proposals[number] = dict(files), title
        self.refs[f"refs/pr/{number}"] = sha
        return sha

    def commit(self, files: dict[str, bytes], message: str = "", *, sha: str = "") -> str:
        """Make a commit that holds exactly these files; its id."""
        parent = self.refs.get("main", "")
        content = repr(sorted((name, hashlib.sha1(data).hexdigest()) for name, data in files.items()))
        sha = sha or hashlib.sha1(f"{parent}{message}{content}{len(self.commits)}".encode()).hexdigest()
        self.commits[sha] = dict(files)
        self.refs["main"] = sha
        self.history.append(sha)
        self.messages.append(message)
        return sha

    def at(self, revision: str) -> tuple[str, dict[str, bytes]] | None:
        """The commit's id and its files."""
        sha = self.refs.get(revision, revision)
        return (sha, self.commits[sha]) if sha in self.commits else None


class LoopbackRepos:
    """All repos of the Hub, and the answers to what is asked about them; who may write has a token."""

    def __init__(self, url: Callable[[], str]) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.objects: dict[str, bytes] = {}
        self.not_taken: dict[str, int] = {}
        """Statuses by which commits are refused that hold a file of a name."""
        self.users: dict[str, str] = {}
        """Ids of accounts by name."""
        self.faults: list[int] = []
        """Statuses that the next requests that change something are answered with."""
        self.buckets = LoopbackBuckets()
        self.jobs = LoopbackJobs(self.repos, self.buckets.buckets)
        self._url = url

    def publish(self, kind: str, repo_id: str, files: dict[str, bytes], *, sha: str = "") -> Repo:
        """A repo with one commit, as if someone had pushed it before."""
        repo = self.repos.setdefault((kind, repo_id), Repo(kind, repo_id))
        repo.commit(files, sha=sha)
        return repo

    def answer(self, method: str, target: str, headers: Any, body: bytes) -> Answer | None:
        """The answer to a request about repos; None where it is about something else."""
        split = urlsplit(target)
        parts = [unquote(part) for part in split.path.strip("/").split("/")]
        if method in ("POST", "PUT", "DELETE") and self.faults:
            return Answer.error("Unavailable", self.faults.pop(0))
        if parts[:2] == ["api", "jobs"]:
            return self.jobs.answer(method, parts[2:], parse_qs(split.query), body)
        if (found := self.buckets.answer(method, parts, headers, body)) is not None:
            return found
        match method, parts:
            case "GET", ["api", "whoami-v2"]:
                return Answer.json({"type": "user", "name": "podeval", "fullname": "podeval", "orgs": [], "auth": {}})
            case "GET", ["api", "users", name, "overview"]:
                return Answer.json({"_id": self.users[name], "user": name}) if name in self.users else Answer.error("")
            case "POST", ["api", "repos", "create"]:
                return self._create(json.loads(body), headers)
            case "POST", ["api", "validate-yaml"]:
                return Answer.json({"errors": [], "warnings": []})
            case "PUT", ["lfs-objects", oid]:
                if hashlib.sha256(body).hexdigest() != oid:
                    return Answer.error("BadObject", 400)
                self.objects[oid] = body
                return Answer(200)
            case "POST", ["lfs-verify"]:
                return Answer(200 if json.loads(body)["oid"] in self.objects else 404)
        return self._about_a_repo(method, parts, parse_qs(split.query), headers, body)

    def _about_a_repo(
        self, method: str, parts: list[str], query: dict[str, list[str]], headers: Any, body: bytes
    ) -> Answer | None:
        api = parts[0] == "api"
        rest = parts[1:] if api else parts
        kind = rest[0] if rest and rest[0] in KINDS else "models"
        rest = rest[1:] if rest and rest[0] in KINDS else rest
        if len(rest) < 2:
            return None
        name = rest[1].removesuffix(".git")
        repo = self.repos.get((kind, f"{rest[0]}/{name}"))
        if repo is None:
            return None if not api and kind != "datasets" else Answer.error("RepoNotFound")
        if repo.private and not headers.get("Authorization"):
            return Answer.error("RepoNotFound", 401)
        if repo.gated and not headers.get("Authorization") and "resolve" in rest:
            return Answer.error("GatedRepo", 403)
        match method, rest[2:]:
            case "POST", ["duplicate"]:
                return self._duplicate(repo, json.loads(body), headers)
            case "GET", []:
                return self._info(repo, "main")
            case "GET", ["revision", revision]:
                return self._info(repo, revision)
            case "GET", ["tree", revision, *path]:
                return self._tree(
                    repo, revision, "/".join(path), recursive=query.get("recursive") in (["true"], ["True"])
                )
            case "POST", ["paths-info", revision]:
                return self._paths(repo, revision, headers, body)
            case "GET", ["refs"]:
                branches = [{"name": n, "ref": f"refs/heads/{n}", "targetCommit": s} for n, s in repo.refs.items()]
                return Answer.json({"branches": branches, "tags": [], "converts": []})
            case "POST", ["preupload", _]:
                asked = json.loads(body)["files"]
                modes = [{"path": f["path"], "uploadMode": _mode(f["path"]), "shouldIgnore": False} for f in asked]
                return Answer.json({"files": modes})
            case "POST", ["info", "lfs", "objects", "batch"]:
                return self._batch(json.loads(body))
            case "POST", ["commit", revision]:
                return self._commit(repo, revision, body, as_pull="create_pr" in query)
            case "GET", ["discussions"]:
                return self._discussions(repo)
            case "POST", ["super-squash", "main"]:
                _, files = repo.at("main")
                for kept in (repo.commits, repo.history, repo.messages):
                    kept.clear()
                repo.commit(files, json.loads(body)["message"])
                return Answer.json({})
            case "GET", ["commits", revision]:
                return self._commits(repo, revision, int(query.get("p", ["0"])[0]))
            case (("GET" | "HEAD"), ["resolve", revision, *path]):
                return self._file(repo, revision, "/".join(path), headers)
        return Answer.error("NotImplemented", 501)

    def _create(self, asked: dict[str, Any], headers: Any) -> Answer:
        if not headers.get("Authorization"):
            return Answer.error("Unauthorized", 401)
        kind = {"dataset": "datasets", "space": "spaces"}.get(asked.get("type", "model"), "models")
        repo_id = f"{asked.get('organization') or 'podeval'}/{asked['name']}"
        there = (kind, repo_id) in self.repos
        private = asked.get("private") or asked.get("visibility") == "private"
        repo = self.repos.setdefault((kind, repo_id), Repo(kind, repo_id, private=bool(private)))
        if not repo.commits:
            repo.commit({".gitattributes": b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"}, "initial commit")
        return Answer.json({"url": f"{self._url()}/{KINDS[kind]}{repo_id}"}, 409 if there else 200)

    def _duplicate(self, repo: Repo, asked: dict[str, Any], headers: Any) -> Answer:
        if not headers.get("Authorization"):
            return Answer.error("Unauthorized", 401)
        copy_id = asked.pop("repository")
        if (repo.kind, copy_id) in self.repos:
            return Answer.error("Conflict", 409)
        copy = Repo(repo.kind, copy_id, private=asked.pop("visibility", "") == "private", settings=asked)
        copy.commit(repo.at("main")[1], f"Duplicate from {repo.id}")
        self.repos[repo.kind, copy_id] = copy
        return Answer.json({"url": f"{self._url()}/{KINDS[repo.kind]}{copy_id}", "filesCopyPending": False})

    def _info(self, repo: Repo, revision: str) -> Answer:
        found = repo.at(revision)
        if found is None:
            return Answer.error("RevisionNotFound")
        sha, files = found
        siblings = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
        about = {"id": repo.id, "author": repo.id.partition("/")[0], "sha": sha, "private": repo.private}
        return Answer.json({**about, "gated": repo.gated, "tags": [], "siblings": siblings, "downloads": 0, "likes": 0})

    def _tree(self, repo: Repo, revision: str, path: str, *, recursive: bool) -> Answer:
        found = repo.at(revision)
        if found is None:
            return Answer.error("RevisionNotFound")
        prefix = f"{path}/" if path else ""
        inside = {name: data for name, data in found[1].items() if name.startswith(prefix)}
        if path and not inside:
            return Answer.error("EntryNotFound")
        folders = {
            prefix + "/".join(name[len(prefix) :].split("/")[:depth])
            for name in inside
            for depth in range(1, name[len(prefix) :].count("/") + 1)
            if recursive or depth == 1
        }
        entries = [{"type": "directory", "path": folder, "oid": "0" * 40, "size": 0} for folder in sorted(folders)]
        entries += [_entry(n, d) for n, d in inside.items() if recursive or "/" not in n[len(prefix) :]]
        return Answer.json(entries)

    def _paths(self, repo: Repo, revision: str, headers: Any, body: bytes) -> Answer:
        found = repo.at(revision)
        if found is None:
            return Answer.error("RevisionNotFound")
        plain = "json" in (headers.get("Content-Type") or "")
        wanted = json.loads(body)["paths"] if plain else parse_qs(body.decode())["paths"]
        entries = [_entry(name, found[1][name]) for name in wanted if name in found[1]]
        folders = [w for w in wanted if any(name.startswith(f"{w}/") for name in found[1])]
        return Answer.json(entries + [{"type": "directory", "path": f, "oid": "0" * 40, "size": 0} for f in folders])

    def _batch(self, asked: dict[str, Any]) -> Answer:
        objects = []
        for item in asked["objects"]:
            upload = {"href": f"{self._url()}/lfs-objects/{item['oid']}", "header": {}}
            verify = {"href": f"{self._url()}/lfs-verify", "header": {}}
            wanted = {} if item["oid"] in self.objects else {"actions": {"upload": upload, "verify": verify}}
            objects.append({**item, **wanted})
        return Answer.json({"transfer": "basic", "objects": objects})

    def _discussions(self, repo: Repo) -> Answer:
        kind = repo.kind.removesuffix("s")
        found = [
            {
                "num": number,
                "title": title,
                "status": "closed" if number in repo.closed else "open",
                "isPullRequest": True,
                "author": {"name": "podeval"},
                "createdAt": "2026-11-01T00:00:00.000Z",
                "repo": {"name": repo.id, "type": kind},
            }
            for number, title in repo.proposals.items()
        ]
        return Answer.json({"discussions": found, "count": len(found), "start": 0})

    def _commits(self, repo: Repo, revision: str, page: int) -> Answer:
        if repo.at(revision) is None:
            return Answer.error("RevisionNotFound")
        found = [
            {"id": sha, "authors": [], "date": "2026-11-01T00:00:00.000Z", "title": title, "message": ""}
            for sha, title in reversed(list(zip(repo.history, repo.messages, strict=True)))
        ]
        answer, last = Answer.json(found[page * 50 : (page + 1) * 50]), (page + 1) * 50 >= len(found)
        url = f"{self._url()}/api/{repo.kind}/{repo.id}/commits/{revision}?p={page + 1}&limit=50"
        answer.headers |= {} if last else {"Link": f'<{url}>; rel="next"'}
        return answer

    def _commit(self, repo: Repo, revision: str, body: bytes, *, as_pull: bool = False) -> Answer:
        files = dict(repo.at(revision)[1]) if repo.at(revision) else {}
        header: dict[str, Any] = {}
        for line in body.splitlines():
            entry = json.loads(line)
            key, value = entry["key"], entry["value"]
            match key:
                case "header":
                    header = value
                case "file" if value["path"] in self.not_taken:
                    return Answer.error(f"{value['path']} is not valid", self.not_taken[value["path"]])
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    files[value["path"]] = self.objects[value["oid"]]
                case "deletedFile":
                    files.pop(value["path"], None)
                case "deletedFolder":
                    files = {n: d for n, d in files.items() if not n.startswith(value["path"].rstrip("/") + "/")}
        if header.get("parentCommit") and header["parentCommit"] != repo.refs["main"]:
            return Answer.error("Conflict", 412)
        if as_pull:
            sha, number = repo.propose(files, header.get("summary", "")), len(repo.proposals)
            pull = f"{self._url()}/{KINDS[repo.kind]}{repo.id}/discussions/{number}"
            where = f"{self._url()}/{KINDS[repo.kind]}{repo.id}/commit/{sha}"
            about = {"success": True, "commitOid": sha, "commitUrl": where, "hookOutput": "", "pullRequestUrl": pull}
            return Answer.json(about)
        sha = repo.commit(files, header.get("summary", ""))
        where = f"{self._url()}/{KINDS[repo.kind]}{repo.id}/commit/{sha}"
        return Answer.json({"success": True, "commitOid": sha, "commitUrl": where, "hookOutput": ""})

    def _file(self, repo: Repo, revision: str, path: str, headers: Any) -> Answer:
        found = repo.at(revision)
        if found is None:
            return Answer.error("RevisionNotFound")
        sha, files = found
        if path not in files:
            return Answer.error("EntryNotFound")
        tag = f'"{hashlib.sha256(files[path]).hexdigest()}"'
        about = {"ETag": tag, "X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        return Answer.content(files[path], headers.get("Range"), **about)


def _mode(path: str) -> str:
    return "lfs" if path.endswith((".parquet", ".safetensors", ".bin")) else "regular"


def _entry(name: str, content: bytes) -> dict[str, Any]:
    entry = {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
    if _mode(name) == "lfs":
        entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
    return entry
