// Send decisions that a person makes with a form, often of a single button, and refresh the part that changes.
// Without this script, a form with the method "dialog" does nothing, so no reason appears in an address.
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

// Refresh the part of the page that changes every 15 s; if there is no answer, the next attempt may get one.
setInterval(async () => {
  const live = document.querySelector("#live[data-open]");
  const answer = live && await fetch(location.href, { cache: "no-store" }).catch(() => null);
  if (!answer?.ok) return;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
  if (next && next.innerHTML !== live.innerHTML) live.replaceWith(next);
}, 15_000);
