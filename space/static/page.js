// What the scripts of all pages share: elements, sentences, keys, and what a browser remembers.

export const byId = (id) => document.getElementById(id);

// A number and its unit are one word, at whose space no line ends; website.py has the same for what the server writes.
const BEFORE_UNIT = /(?<=\d) (?=(?:%|pp|s|min|h|MB|dB(?:TP)?|LUF?S?|(?:vote|minute)s?|[秒票]|分钟)(?![A-Za-z]))/g;
const joinUnits = (text) => text.replace(BEFORE_UNIT, "\u00a0");

/** An element with attributes and children; what others wrote is only ever text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  const content = children.flat(2).filter((child) => child != null && child !== false && child !== "");
  element.append(...content.map((child) => (typeof child === "string" ? joinUnits(child) : child)));
  return element;
}

/** Write sentences into elements, by their ids. */
export function write(sentences) {
  for (const [id, sentence] of Object.entries(sentences)) byId(id).textContent = joinUnits(sentence);
}

/** A sentence with its places filled, by name or in order. */
export function fill(sentence, values) {
  let next = 0;
  return joinUnits(sentence.replace(/\{(\w*)\}/g, (_, name) => values[name || next++]));
}

/** Seconds as 0:05, 12:34 or 1:02:03. */
export function clock(seconds) {
  const whole = new Date(1000 * Math.max(0, Math.round(seconds)));
  return whole.toISOString().slice(11, 19).replace(/^(00:)?0?/, "");
}

/** What this tab or browser remembers under a name, after a value was set; null where it keeps nothing. */
export function remember(storage, name, value) {
  try {
    if (value !== undefined) window[storage].setItem(name, JSON.stringify(value));
    return JSON.parse(window[storage].getItem(name));
  } catch {
    return null;
  }
}

/** Have this browser remember the value of a field, and `act` on it, now and after each change. */
export function keepField(field, name, act = () => {}) {
  const property = field.type === "checkbox" ? "checked" : "value";
  const take = (value) => { act(field[property] = remember("localStorage", name, value) ?? field[property]); };
  field.addEventListener("change", () => take(field[property]));
  take();
}

const OTHERS = "textarea, select, audio, input:not([type=range], [type=radio], [type=checkbox])";
const PRESSED = "button, a, summary, input:not([type=range])";
const CHOSEN = "[aria-selected=true], [aria-current]"; // what leads to this very page has nothing to do for a key

/**
 * Have `act` called with each key that is for the page: pressed alone, not typed into a field, not for a button in
 * focus, and not while the box of the shortcuts is empty. A key for which it returns true is done with.
 */
export function onKey(act) {
  const box = byId("shortcuts-on");
  if (box) keepField(box, "podeval.shortcuts");
  addEventListener("keydown", (event) => {
    const { target, key, altKey, ctrlKey, metaKey, isComposing, defaultPrevented } = event;
    if (defaultPrevented || altKey || ctrlKey || metaKey || isComposing || box?.checked === false) return;
    const place = target instanceof Element ? target : document.body;
    if (place.closest(OTHERS) || (key === " " && place.closest(PRESSED) && !place.closest(CHOSEN))) return;
    if (act(key.toLowerCase(), place, event.repeat)) event.preventDefault();
  });
}
