// What a person decides by a button or a small form, sent; and what goes on by itself, looked at again.
import { byId, write } from "./page.js";
import { Refusal, post } from "./server.js";

const PAUSE = 15_000;

async function send(asker, button, address, content) {
  if (asker.dataset.sure && !confirm(asker.dataset.sure)) return;
  button.disabled = true;
  write({ problem: "" });
  try {
    await post(address, content);
    location.reload();
  } catch (error) {
    write({ problem: error instanceof Refusal ? error.message : "…" });
    byId("problem").scrollIntoView({ block: "center" });
    button.disabled = false;
  }
}

addEventListener("click", ({ target }) => {
  const button = target.closest("[data-post]");
  if (button) send(button, button, button.dataset.post, {});
});
addEventListener("submit", (event) => {
  const { dataset, elements: { reason, votes } } = event.target;
  if (!dataset.content) return;
  event.preventDefault();
  const content = { ...JSON.parse(dataset.content), reason: reason.value };
  if (votes) content.votes = votes.value ? Number(votes.value) : null;
  send(event.target, event.submitter, dataset.address, content);
});
// Sent without this script, a form would only open its page again, with the reason in the address.
for (const button of document.querySelectorAll("form.decision button")) button.disabled = false;

// The part of the page that changes, as it is by now, while it does; no answer this time, perhaps one the next.
setInterval(async () => {
  const live = document.querySelector("#live[data-open]");
  const answer = live && await fetch(location.href, { cache: "no-store" }).catch(() => null);
  if (!answer?.ok) return;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
  if (next && next.innerHTML !== live.innerHTML) live.replaceWith(next);
}, PAUSE);
