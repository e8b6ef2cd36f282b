// One submission: cancelling and trying again, and looking whether it went on.
import { get, post, Refusal } from "/own/arena_wire.js";

const standing = document.getElementById("standing");
const problem = document.getElementById("problem");
const OPEN = ["received", "checked", "queued", "running", "measured"];
const PAUSE = 15_000;

for (const button of document.querySelectorAll("[data-post]")) {
  button.addEventListener("click", async () => {
    if (button.dataset.sure && !confirm(button.dataset.sure)) return;
    button.disabled = true;
    try {
      await post(button.dataset.post, {});
      location.reload();
    } catch (error) {
      problem.hidden = false;
      problem.textContent = error instanceof Refusal ? error.message : "…";
      button.disabled = false;
    }
  });
}

async function look() {
  try {
    const now = await get(`/api/v1/submissions/${standing.dataset.id}`);
    if (now.state !== standing.dataset.state) return location.reload();
    if (now.items_total && now.state === "running") {
      standing.querySelector(".state").nextSibling.textContent = ` ${now.items_done} / ${now.items_total}`;
    }
  } catch {
    // No answer this time; the next look may have one.
  }
  setTimeout(look, PAUSE);
}

if (OPEN.includes(standing.dataset.state)) setTimeout(look, PAUSE);
