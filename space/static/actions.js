// What a person decides by a button or a small form, sent; and what goes on by itself, looked at again.
import { post, Refusal } from "/own/arena_wire.js";

const PAUSE = 15_000;

function say(sentence) {
  const problem = document.getElementById("problem");
  problem.hidden = !sentence;
  problem.textContent = sentence;
  if (sentence) problem.scrollIntoView({ block: "center" });
}

async function send(asker, button, address, content) {
  if (asker.dataset.sure && !confirm(asker.dataset.sure)) return;
  button.disabled = true;
  say("");
  try {
    await post(address, content);
    location.reload();
  } catch (error) {
    say(error instanceof Refusal ? error.message : "…");
    button.disabled = false;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-post]");
  if (button) send(button, button, button.dataset.post, {});
});

for (const form of document.querySelectorAll("form.decision")) {
  const button = form.querySelector("button");
  // Sent without this script, a form would only open its page again, with the reason in the address.
  button.disabled = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const content = { ...JSON.parse(form.dataset.content), reason: form.elements.reason.value };
    const { votes } = form.elements;
    if (votes) content.votes = votes.value ? Number(votes.value) : null;
    send(form, button, form.dataset.address, content);
  });
}

// The part of the page that changes, as it is by now, while it does; no answer this time, perhaps one the next.
setInterval(async () => {
  const live = document.querySelector("#live[data-open]");
  const answer = live && await fetch(location.href, { cache: "no-store" }).catch(() => null);
  if (!answer?.ok) return;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
  if (next && next.innerHTML !== live.innerHTML) live.replaceWith(next);
}, PAUSE);
