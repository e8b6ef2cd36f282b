// What a page of a listening test asks, as the server wrote it: reads the answer and what is open, fills in what was saved.
import { fill } from "./player.js";

/** A slider from 0 to 100 in named bands; it has no mark until the listener sets one. */
class Slider {
  constructor(root, texts) {
    Object.assign(this, { root, texts, value: null, input: root.querySelector("input"), bands: [...root.querySelector(".bands").children] });
    const { input } = this;
    const say = () => input.dispatchEvent(new Event("input", { bubbles: true }));
    input.addEventListener("input", () => this.set(input.value));
    // A mark of 50 is set without moving the thumb, by a click on it or by Enter.
    input.addEventListener("pointerup", say);
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      say();
    });
    this.show();
  }

  set(value) {
    this.value = Number(value);
    this.input.value = value;
    this.show();
  }

  show() {
    const { value, bands, texts } = this;
    const place = value === null ? -1 : Math.min(bands.length - 1, Math.floor(value / (100 / bands.length)));
    this.root.classList.toggle("unset", value === null);
    this.root.querySelector("output").textContent = value === null ? "–" : String(value);
    const said = value === null ? texts.unmarked : fill(texts.marked, { value, band: bands[place]?.textContent });
    this.input.setAttribute("aria-valuetext", said);
    bands.forEach((band, number) => band.classList.toggle("in", number === place));
  }
}

/** One question: a mark (of a slider, a choice or a number), words, or both. */
class Question {
  constructor(root, texts) {
    Object.assign(this, { root, name: root.dataset.asked, label: root.dataset.label, optional: "optional" in root.dataset });
    this.slider = root.matches(".mark") ? new Slider(root, texts) : null;
    this.holder = this.slider ? root.closest("article") : root;
    this.radios = [...root.querySelectorAll("[type=radio]")];
    this.number = root.querySelector("[type=number]");
    this.words = root.querySelector("textarea");
  }

  get mark() {
    if (this.slider) return this.slider.value;
    if (this.number) return /^\d+$/.test(this.number.value) ? Number(this.number.value) : null;
    const chosen = this.radios.find((radio) => radio.checked);
    return chosen ? Number(chosen.value) : null;
  }

  set mark(value) {
    if (typeof value !== "number") return;
    if (this.slider) this.slider.set(value);
    else if (this.number) this.number.value = value;
    for (const radio of this.radios) radio.checked = Number(radio.value) === value;
  }

  /** What was given so far, in the form of an answer. */
  get partial() {
    const marked = this.number || this.radios.length;
    if ("parts" in this.root.dataset) return { ...(marked ? { mark: this.mark } : {}), ...(this.words ? { reason: this.words.value } : {}) };
    return this.words ? this.words.value : this.mark;
  }

  /** The answer, null while something of it is open. */
  read() {
    const given = this.partial;
    const said = !this.words || this.words.value.trim();
    if (!("parts" in this.root.dataset)) return said ? given : null;
    return said && given.mark !== null ? given : null;
  }

  fill(saved) {
    const parts = saved !== null && typeof saved === "object" ? saved : { mark: saved, reason: saved };
    this.mark = parts.mark;
    if (this.words && typeof parts.reason === "string") this.words.value = parts.reason;
  }

  focus() {
    const marks = this.slider?.input ?? this.number ?? this.radios[0];
    (marks && this.mark === null ? marks : this.words ?? marks).focus();
  }
}

/** The questions in an element: what `read` gives as `open` is what `point` points at. */
export function questions(root, texts) {
  const entries = [...root.querySelectorAll("[data-asked]")].map((each) => new Question(each, texts));
  return {
    read: () => {
      const answer = {}, partial = {}, open = [];
      for (const part of entries) {
        const given = part.read();
        part.holder.classList.remove("open-question");
        if (given !== null) answer[part.name] = given;
        else if (!part.optional) open.push(part);
        partial[part.name] = part.partial;
      }
      return { answer, partial, open };
    },
    point: (open) => {
      for (const part of open) part.holder.classList.add("open-question");
      open[0]?.focus();
    },
    fill: (saved) => { for (const part of entries) if (saved?.[part.name] !== undefined) part.fill(saved[part.name]); },
  };
}
