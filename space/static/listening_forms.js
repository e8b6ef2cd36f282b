// What a page of a listening test asks, as the server wrote it: reads the answer and what is open, fills in what was saved.
import { fill } from "./player.js";

const asked = (form) => [...form.querySelectorAll("[data-asked]")];
const holder = (question) => (question.matches(".mark") ? question.closest("article") : question);

/** What was given to a question: a mark of a slider, a choice or a number, and words; null for what was not, nothing for what is not asked. */
function given(question) {
  const [slider, choice, number] = ["range", "radio", "number"].map((type) => question.querySelector(`[type=${type}]`));
  const chosen = slider ? !question.matches(".unset") && slider : number ? /^\d+$/.test(number.value) && number : question.querySelector(":checked");
  const mark = slider || choice || number ? { mark: chosen ? Number(chosen.value) : null } : {};
  const words = question.querySelector("textarea");
  return { ...mark, ...(words ? { reason: words.value } : {}) };
}

/** Show the mark of a slider from 0 to 100 in named bands; it has none until the listener sets one. */
function show(question, texts) {
  const [slider, bands] = [question.querySelector("input"), [...question.querySelectorAll(".bands span")]];
  const value = question.matches(".unset") ? null : slider.value;
  const place = value === null ? -1 : Math.min(bands.length - 1, Math.floor(value / (100 / bands.length)));
  question.querySelector("output").textContent = value ?? "–";
  slider.setAttribute("aria-valuetext", value === null ? texts.unmarked : fill(texts.marked, { value, band: bands[place].textContent }));
  bands.forEach((band, number) => band.classList.toggle("in", number === place));
}

/** Let the sliders of a form be set, and fill in what was given before. */
export function begin(form, texts, saved) {
  for (const question of asked(form)) {
    const before = saved?.[question.dataset.asked] ?? null;
    const { mark, reason } = before !== null && typeof before === "object" ? before : { mark: before, reason: before };
    const words = question.querySelector("textarea");
    if (words && typeof reason === "string") words.value = reason;
    for (const input of typeof mark === "number" ? question.querySelectorAll("input") : []) {
      if (input.type === "radio") input.checked = Number(input.value) === mark;
      else input.value = mark;
      question.classList.remove("unset");
    }
    if (!question.matches(".mark")) continue;
    const set = () => {
      question.classList.remove("unset");
      show(question, texts);
    };
    const slider = question.querySelector("input");
    slider.addEventListener("input", set);
    // A mark of 50 is set without moving the thumb, by a click on it or by Enter.
    const say = () => slider.dispatchEvent(new Event("input", { bubbles: true }));
    slider.addEventListener("pointerup", say);
    slider.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); say(); } });
    show(question, texts);
  }
}

/** The answer as the server takes it, the same with what is not complete, and the questions that are open. */
export function read(form) {
  const answer = {}, partial = {}, open = [];
  for (const question of asked(form)) {
    const { asked: name, optional, parts } = question.dataset;
    const said = given(question);
    const whole = said.mark !== null && said.reason?.trim() !== "";
    partial[name] = parts === undefined ? said.reason ?? said.mark : said;
    holder(question).classList.remove("open-question");
    if (whole) answer[name] = partial[name];
    else if (optional === undefined) open.push(question);
  }
  return { answer, partial, open };
}

/** Point at questions that are open. */
export function point(open) {
  for (const question of open) holder(question).classList.add("open-question");
  const unmarked = given(open[0]).mark === null;
  open[0].querySelector(unmarked ? "input" : "textarea, input").focus();
}
