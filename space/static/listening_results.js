// What an operator decides about a test: who counts, and that nobody else begins.
import { post, Refusal } from "/own/arena_wire.js";

const problem = document.getElementById("problem");

async function send(address, content) {
  problem.hidden = true;
  try {
    await post(address, content);
    location.reload();
  } catch (error) {
    problem.hidden = false;
    problem.textContent = error instanceof Refusal ? error.message : "…";
  }
}

for (const form of document.querySelectorAll("form.standing")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { listener, counted, address } = form.dataset;
    send(address, { listener, counted: counted === "true", reason: form.elements.reason.value });
  });
}
for (const button of document.querySelectorAll("[data-post]")) {
  button.addEventListener("click", () => send(button.dataset.post, {}));
}
