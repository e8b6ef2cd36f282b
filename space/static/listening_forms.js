// The questions of a listening test's page, as written by the server, and the listener's answers.
import { fill } from "./page.js";

const fields = (form) => [...form.querySelectorAll("[data-asked] :is(input, textarea)")];
const about = (field) => field.closest("[data-asked]").dataset;
const partOf = ({ localName }) => (localName === "textarea" ? "reason" : "mark");

/** Show the mark of a slider from 0 to 100 in named bands; there is no mark until the listener sets one. */
function show(slider, texts, set) {
  const question = slider.closest("[data-asked]");
  const bands = [...question.querySelectorAll(".bands span")];
  const place = set ? Math.min(bands.length - 1, Math.floor((slider.value * bands.length) / 100)) : -1;
  slider.setCustomValidity(set ? "" : texts.unmarked);
  question.querySelector("output").textContent = set ? slider.value : "–";
  const band = bands[place]?.textContent;
  slider.ariaValueText = set ? fill(texts.marked, { value: slider.value, band }) : texts.unmarked;
  bands.forEach((each, number) => each.classList.toggle("in", number === place));
}

/** Enable the sliders of a form, and fill in earlier answers. */
export function begin(form, texts, answer = {}) {
  for (const field of fields(form)) {
    const given = answer[about(field).asked];
    const value = typeof given === "object" ? given?.[partOf(field)] : given;
    if (field.type === "radio") field.checked = Number(field.value) === value;
    else field.value = value ?? field.defaultValue;
    if (field.type !== "range") continue;
    show(field, texts, value !== undefined);
    field.addEventListener("input", () => show(field, texts, true));
    // A click on the thumb, or Enter, sets a mark of 50 without moving it.
    const set = () => field.dispatchEvent(new Event("input", { bubbles: true }));
    field.addEventListener("pointerup", set);
    field.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); set(); } });
  }
}

/** Return the answers in the server's form: a mark, words, or both if a question has two parts. */
export function read(form) {
  const answer = {};
  const isSet = ({ type, checked, value, validity }) => (type === "radio" ? checked : value.trim() && validity.valid);
  for (const field of fields(form).filter(isSet)) {
    const { asked, parts } = about(field);
    const value = partOf(field) === "mark" ? Number(field.value) : field.value;
    answer[asked] = parts === undefined ? value : { ...answer[asked], [partOf(field)]: value };
  }
  return answer;
}
