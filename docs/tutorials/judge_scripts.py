# %% [markdown]
# # Judge scripts with a language model
#
# A judge can be any server with an OpenAI-compatible interface, a GGUF file, or a local model. This page uses a
# stand-in that counts friendly words, so that you can run the page without a judge. Replace the stand-in's address with
# the address of your model.

# %%
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

calls = []


class StandIn(BaseHTTPRequestHandler):
    """Answer as a judge would, but by counting friendly words."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        calls.append(request)
        friendly = len(re.findall("welcome|thank|good", request["messages"][-1]["content"].casefold()))
        answer = json.dumps({"reason": f"{friendly} friendly words", "warmth": min(5, 1 + 2 * friendly)})
        body = json.dumps(
            {"choices": [{"message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}]}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


server = HTTPServer(("127.0.0.1", 0), StandIn)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/v1"

# %% [markdown]
# ## Ask your own question
#
# A schema describes the answer. If an answer does not fit the schema, the judge is asked again; if no answer fits, the
# item is unscored, and its score is never set to 0. The judge gives the reason before the rating, so that the rating
# follows from the reason.

# %%
from pydantic import BaseModel, Field

from podeval.judges import JudgeClient, JudgeRequest, Prompt, UsableAnswer
from podeval.judges.judge import find_judge


class Warmth(BaseModel):
    """The judge's answer."""

    reason: str
    warmth: int = Field(ge=1, le=5)


prompt = Prompt(
    name="warmth",
    version="1.0",
    system="You judge how warmly the hosts of a podcast speak with each other.",
    template="Judge this script:\n{script}\nGive the reason first, then the warmth from 1 to 5.",
    answer=Warmth,
    source="our own",
)
scripts = ["HOST: Welcome back!\nGUEST: Thank you, so good to be here.", "HOST: You are late.\nGUEST: So what."]


def ask() -> list[str]:
    """Ask about every script, and return the ratings with their reasons."""
    client = JudgeClient(find_judge(f"stand-in@{address}"), Path("judge-records"))
    outcomes = client.ask([JudgeRequest(prompt, {"script": script}) for script in scripts])
    return [
        f"{outcome.value.warmth} ({outcome.value.reason})" if isinstance(outcome, UsableAnswer) else str(outcome)
        for outcome in outcomes
    ]


for answer in ask():
    print(answer)

# %% [markdown]
# ## Ask once, replay at any time
#
# Every raw answer is stored. A second run does not call the judge, and anyone who has the records can check each
# number.

# %%
asked = len(calls)
ask()
print(f"{asked} calls, and {len(calls) - asked} more the second time")
server.shutdown()

# %% [markdown]
# ## The metrics of the papers
#
# `podeval measure script_quality script.json --judge MODEL@https://host/v1 --records judgements/` asks PodBench's
# questions; `dialogue_judge` asks PodEval's, in both orders. [Judges](../judges.md) describes how to audit a judge.
