// What a page asks, by kind of test: builds it, reads the answer and what is still open, fills in what was saved.
import { fill } from "/own/player.js";

/** An element; a string among the children is text, never markup. */
export function make(tag, attributes = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) found.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) found.setAttribute(name, value);
  }
  found.append(...children.filter((child) => child !== null && child !== undefined));
  return found;
}

let count = 0;
const unique = () => `asked-${++count}`;

/** A slider from 0 to 100 in named bands; it has no mark until the listener sets one. */
export function slider(letter, question, texts) {
  const name = fill(texts.mark_of, { name: letter });
  const input = make("input", { type: "range", min: 0, max: 100, step: 1, value: 50, "aria-label": `${name}. ${question.text}` });
  const output = make("output", {});
  const bands = make("div", { class: "bands", "aria-hidden": "true" }, ...question.labels.map((label) => make("span", {}, label)));
  const root = make("div", { class: "mark unset" }, input, output, bands);
  let value = null;
  const show = () => {
    const place = value === null ? -1 : Math.min(question.labels.length - 1, Math.floor(value / (100 / question.labels.length)));
    root.classList.toggle("unset", value === null);
    output.textContent = value === null ? "–" : String(value);
    const said = value === null ? texts.unmarked : fill(texts.marked, { value, band: question.labels[place] });
    input.setAttribute("aria-valuetext", said);
    [...bands.children].forEach((band, number) => band.classList.toggle("in", number === place));
  };
  const set = () => {
    value = Number(input.value);
    show();
  };
  input.addEventListener("input", set);
  // A mark of 50 is set without moving the thumb, by a click on it or by Enter.
  input.addEventListener("pointerup", () => { set(); input.dispatchEvent(new Event("input", { bubbles: true })); });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
  show();
  return {
    root,
    label: name,
    focus: () => input.focus(),
    read: () => value,
    fill: (saved) => { if (typeof saved === "number") { input.value = saved; set(); } },
  };
}

function choice(question, values, labels) {
  const group = unique();
  const options = values.map((value, place) => {
    const input = make("input", { type: "radio", name: group, value });
    return { input, root: make("label", {}, input, make("span", {}, labels[place])) };
  });
  return {
    root: make("div", { class: "choices" }, ...options.map((option) => option.root)),
    focus: () => options[0].input.focus(),
    read: () => { const chosen = options.find((option) => option.input.checked); return chosen ? Number(chosen.input.value) : null; },
    fill: (saved) => { for (const option of options) option.input.checked = Number(option.input.value) === saved; },
  };
}

function words(label, rows, required) {
  const area = make("textarea", { rows, maxlength: 2000, "aria-required": required ? "true" : undefined });
  return {
    root: make("label", {}, label, area),
    focus: () => area.focus(),
    read: () => area.value,
    fill: (saved) => { area.value = typeof saved === "string" ? saved : ""; },
  };
}

function whole(label) {
  const input = make("input", { type: "number", min: 1, max: 50, step: 1, inputmode: "numeric", "aria-required": "true" });
  return {
    root: make("label", {}, label, input),
    focus: () => input.focus(),
    read: () => (/^\d+$/.test(input.value) ? Number(input.value) : null),
    fill: (saved) => { if (typeof saved === "number") input.value = saved; },
  };
}

const asked = (question, ...parts) =>
  make("fieldset", { class: "asked" }, make("legend", { lang: "en" }, question.text), ...parts.map((part) => part.root));

/** One question of a page: `read` gives its entry in the answer, null while something of it is open. */
function entry(kind, question, ties, texts) {
  const named = (part, root = asked(question, part)) => ({ ...part, root, name: question.name, label: question.text });
  if (kind === "questionnaire") return questioned(question, texts);
  if (kind === "rubric" && question.name === "rationale") {
    const part = words(texts.words, 3, true);
    return named({ ...part, read: () => part.read().trim() || null, partial: part.read }, asked(question, part));
  }
  if (kind === "rubric") return named(choice(question, [1, 0], [texts.met, texts.not_met]));
  if (kind === "mos") return named(choice(question, [1, 2, 3, 4, 5], question.labels.map((label, n) => `${n + 1} · ${label}`)));
  const values = kind === "preference" ? [-2, -1, 0, 1, 2] : ties ? [-1, 0, 1] : [-1, 1];
  return named(choice(question, values, question.labels));
}

function questioned(question, texts) {
  const why = question.optional ? words(texts.optional, 2, false) : question.reason ? words(texts.reason, 2, true) : null;
  const mark = question.optional ? null
    : question.labels.length ? choice(question, question.labels.map((_, n) => n + 1), question.labels.map((label, n) => `${n + 1} · ${label}`))
      : whole(texts.number_label);
  const partial = () => ({ ...(mark ? { mark: mark.read() } : {}), ...(why ? { reason: why.read() } : {}) });
  return {
    name: question.name,
    label: question.text,
    root: asked(question, ...[mark, why].filter(Boolean)),
    optional: question.optional,
    focus: () => (mark && mark.read() === null ? mark : why ?? mark).focus(),
    partial,
    read: () => {
      const given = partial();
      if (question.optional) return given.reason.trim() ? { reason: given.reason } : null;
      return given.mark === null || (why && !given.reason.trim()) ? null : given;
    },
    fill: (saved) => { mark?.fill(saved?.mark); why?.fill(saved?.reason); },
  };
}

/**
 * The questions of a page.
 * @param {Map<string, HTMLElement>} cards of the stimuli, where sliders are put
 * @returns {{root, read(): {answer, partial, open}, fill(answer)}}
 */
export function questions(kind, shown, cards, texts) {
  const root = make("div", {});
  const entries = kind === "mushra"
    ? [...cards].map(([letter, card]) => {
      const part = slider(letter, shown.questions[0], texts);
      card.append(part.root);
      return { ...part, name: letter, holder: card };
    })
    : shown.questions.map((question) => entry(kind, question, shown.questions[0].labels.length > 2, texts));
  if (kind !== "mushra") root.append(...entries.map((part) => part.root));
  return {
    root,
    read: () => {
      const answer = {}, partial = {}, open = [];
      for (const part of entries) {
        const given = part.read();
        (part.holder ?? part.root).classList.remove("open-question");
        if (given !== null) answer[part.name] = given;
        else if (!part.optional) open.push(part);
        partial[part.name] = part.partial ? part.partial() : given;
      }
      return { answer, partial, open };
    },
    point: (open) => {
      for (const part of open) (part.holder ?? part.root).classList.add("open-question");
      open[0]?.focus();
    },
    fill: (saved) => { for (const part of entries) if (saved?.[part.name] !== undefined) part.fill(saved[part.name]); },
  };
}
