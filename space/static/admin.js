// What an operator decides: the form's content with the reason, sent; the page again as it is then.
import { post, Refusal } from "/own/arena_wire.js";

const problem = document.getElementById("problem");

function say(sentence) {
  problem.hidden = !sentence;
  problem.textContent = sentence;
  if (sentence) problem.scrollIntoView({ block: "center" });
}

for (const form of document.querySelectorAll("form.decision")) {
  // Sent without this script, a form would only open its page again, with the reason in the address.
  form.querySelector("button").disabled = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.dataset.sure && !confirm(form.dataset.sure)) return;
    const content = { ...JSON.parse(form.dataset.content), reason: form.elements.reason.value };
    const votes = form.elements.votes;
    if (votes) content.votes = votes.value ? Number(votes.value) : null;
    const button = form.querySelector("button");
    button.disabled = true;
    say("");
    try {
      await post(form.dataset.address, content);
      location.reload();
    } catch (error) {
      say(error instanceof Refusal ? error.message : "…");
      button.disabled = false;
    }
  });
}
