// What a page of a listening test asks, as the server wrote it: what was answered, and what is open.
import { fill } from "./page.js";

const asked = (form) => [...form.querySelectorAll("[data-asked]")];

/** Show the mark of a slider from 0 to 100 in named bands; it has none until the listener sets one. */
function show(question, slider, texts, set) {
  const bands = [...question.querySelectorAll(".bands span")];
  const place = set ? Math.min(bands.length - 1, Math.floor((slider.value * bands.length) / 100)) : -1;
  slider.setCustomValidity(set ? "" : texts.unmarked);
  question.querySelector("output").textContent = set ? slider.value : "–";
  const band = bands[place]?.textContent;
  slider.ariaValueText = set ? fill(texts.marked, { value: slider.value, band }) : texts.unmarked;
  bands.forEach((each, number) => each.classList.toggle("in", number === place));
}

/** Let the sliders of a form be set, and fill in what was answered before. */
export function begin(form, texts, saved) {
  for (const question of asked(form)) {
    const before = saved?.[question.dataset.asked] ?? null;
    const { mark, reason } = typeof before === "object" ? before ?? {} : { mark: before, reason: before };
    for (const input of question.querySelectorAll("input, textarea")) {
      if (input.type === "radio") input.checked = Number(input.value) === mark;
      else input.value = (input.type === "textarea" ? reason : mark) ?? input.defaultValue;
      if (input.type !== "range") continue;
      show(question, input, texts, typeof mark === "number");
      // A mark of 50 is set without moving the thumb, by a click on it or by Enter.
      const set = () => input.dispatchEvent(new Event("input", { bubbles: true }));
      input.addEventListener("input", () => show(question, input, texts, true));
      input.addEventListener("pointerup", set);
      input.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); set(); } });
    }
  }
}

/** What was answered, as the server takes it; without `whole`, what is not complete with it. */
export function read(form, whole) {
  const answer = {};
  for (const question of asked(form)) {
    const inputs = [...question.querySelectorAll("input")];
    const isSet = (input) => (input.type === "radio" ? input.checked : input.value && input.validity.valid);
    const given = inputs.find(isSet);
    const mark = given && Number(given.value);
    const reason = question.querySelector("textarea")?.value;
    const isWhole = (!inputs.length || given) && reason?.trim() !== "";
    if (whole && !isWhole) continue;
    answer[question.dataset.asked] = question.dataset.parts === undefined ? reason ?? mark ?? null : { mark, reason };
  }
  return answer;
}

/** The questions that are open, which are pointed at. */
export function point(form) {
  const open = asked(form).filter((question) => question.querySelector(":invalid"));
  form.classList.toggle("pointed", open.length > 0);
  open[0]?.querySelector(":invalid").focus();
  return open.map((question) => question.dataset.label);
}
