// Functions that the scripts of all pages share: elements, sentences, keys, and values stored in the browser.

export const byId = (id) => document.getElementById(id);

// No line breaks between a number and its unit; website.py does the same for text that the server writes.
const BEFORE_UNIT = /(?<=\d) (?=(?:%|pp|s|min|h|MB|dB(?:TP)?|LUF?S?|(?:vote|minute)s?|[秒票]|分钟)(?![A-Za-z]))/g;
const joinUnits = (text) => text.replace(BEFORE_UNIT, "\u00a0");

/** Make an element with attributes and children; strings from others are always inserted as text. */
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

/** Return a sentence with its placeholders filled in, by name or in order. */
export function fill(sentence, values) {
  let next = 0;
  return joinUnits(sentence.replace(/\{(\w*)\}/g, (_, name) => values[name || next++]));
}

/** Format seconds as 0:05, 12:34 or 1:02:03. */
export function clock(seconds) {
  const whole = new Date(1000 * Math.max(0, Math.round(seconds)));
  return whole.toISOString().slice(11, 19).replace(/^(00:)?0?/, "");
}

/** Store a value under a name if one is given, and return the stored value; null without storage. */
export function remember(storage, name, value) {
  try {
    if (value !== undefined) window[storage].setItem(name, JSON.stringify(value));
    return JSON.parse(window[storage].getItem(name));
  } catch {
    return null;
  }
}

/** Store the value of a field in this browser, and `act` on the value now and after each change. */
export function keepField(field, name, act = () => {}) {
  const property = field.type === "checkbox" ? "checked" : "value";
  const take = (value) => { act(field[property] = remember("localStorage", name, value) ?? field[property]); };
  field.addEventListener("change", () => take(field[property]));
  take();
}

const OTHERS = "textarea, select, audio, input:not([type=range], [type=radio], [type=checkbox])";
const PRESSED = "button, a, summary, input:not([type=range])";
const CHOSEN = "[aria-selected=true], [aria-current]"; // links to the current page do not respond to keys

/**
 * Call `act` with each key meant for the page: pressed alone, not typed into a field, not meant for a focused button,
 * and only while the checkbox for shortcuts is ticked. A key for which `act` returns true is not processed further.
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
