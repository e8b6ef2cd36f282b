// What a person decides by a form, often of one button, sent; and what goes on by itself, looked at again.
// Without this script a form of the method "dialog" does nothing, so no reason comes into an address.
import { byId, write } from "./page.js";
import { post } from "./server.js";

addEventListener("submit", async (event) => {
  const { dataset } = event.target;
  if (!dataset.content) return;
  event.preventDefault();
  if (dataset.sure && !confirm(dataset.sure)) return;
  const content = { ...JSON.parse(dataset.content), ...Object.fromEntries(new FormData(event.target)) };
  if ("votes" in content) content.votes = content.votes ? Number(content.votes) : null;
  event.submitter.disabled = true;
  try {
    await post(dataset.address, content);
    location.reload();
  } catch (error) {
    write({ problem: error.message || "…" });
    byId("problem").scrollIntoView({ block: "center" });
    event.submitter.disabled = false;
  }
});

// The part of the page that changes, as it is by now, every 15 s; no answer this time, perhaps one the next.
setInterval(async () => {
  const live = document.querySelector("#live[data-open]");
  const answer = live && await fetch(location.href, { cache: "no-store" }).catch(() => null);
  if (!answer?.ok) return;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
  if (next && next.innerHTML !== live.innerHTML) live.replaceWith(next);
}, 15_000);
