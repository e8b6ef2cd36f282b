// The form of a submission: what is filled in as a document, what the gate says of it, and handing it in.
import { NoAnswer, post, Refusal } from "/own/arena_wire.js";

const texts = JSON.parse(document.getElementById("texts").textContent);
const form = document.getElementById("submission");
const outcome = document.getElementById("outcome");
const PAUSE = 1500;
let waiting = 0;
let latest = 0;

const kind = () => form.elements.kind.value;
const inUse = (field) => !field.closest("[data-kind][hidden]");
const entries = () => [...form.querySelectorAll("[data-path]")].filter(inUse);

function valueOf(field) {
  if (field.dataset.looks === "flag") return field.checked;
  const text = field.value.trim();
  if (text === "") return undefined;
  if (field.dataset.looks === "list") return text.split(",").map((part) => part.trim()).filter(Boolean);
  return field.dataset.looks === "number" && /^\d{1,15}$/.test(text) ? Number(text) : text;
}

/** What is filled in, as the document that `podeval submit` reads. */
function written() {
  const found = { schema_version: 1, system: {}, benchmarks: [], source: { kind: kind() } };
  for (const field of entries()) {
    const value = valueOf(field);
    if (value === undefined) continue;
    const names = field.dataset.path.split(".");
    const last = names.pop();
    names.reduce((block, name) => (block[name] ??= {}), found)[last] = value;
  }
  const tracks = new Map();
  for (const box of form.querySelectorAll("[data-benchmark]:checked")) {
    tracks.set(box.dataset.benchmark, [...(tracks.get(box.dataset.benchmark) ?? []), box.dataset.track]);
  }
  found.benchmarks = [...tracks].map(([name, entered]) => ({ name, tracks: entered }));
  return found;
}

function element(name, content = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = content;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function nameOf(path) {
  const field = entries().find((each) => each.dataset.path === path.replace(/\[\d+\]$/, ""));
  return field ? field.labels[0].firstChild.textContent.trim() : path;
}

function mark(refusals) {
  const wrong = new Set(refusals.map((each) => each.field.replace(/\[\d+\]$/, "")));
  for (const field of entries()) field.setAttribute("aria-invalid", String(wrong.has(field.dataset.path)));
}

function showRefusals(refusals) {
  mark(refusals);
  const list = element("ul");
  for (const each of refusals) {
    const line = element("li");
    line.append(element("strong", each.field ? nameOf(each.field) : each.rule), `: ${each.message}`);
    if (!each.field) line.append(element("div", `${texts.asks} ${each.asks}`, { class: "quiet" }));
    list.append(line);
  }
  const box = element("div", "", { class: "notice" });
  box.append(element("p", texts.refused), list);
  outcome.replaceChildren(box);
}

function time(seconds) {
  if (seconds === null) return texts.unknown;
  const minutes = Math.max(1, Math.round(seconds / 60));
  return seconds > 5400 ? `${(seconds / 3600).toFixed(1)} ${texts.hours}` : `${minutes} ${minutes === 1 ? texts.minute : texts.minutes}`;
}

function showPreview(preview) {
  mark([]);
  const box = element("div", "", { class: "card" });
  const list = element("ul");
  for (const run of preview.runs) {
    const count = run.items === null ? texts.items_unknown : `${run.items} ${texts.items}`;
    const preset = run.preset ? ` · ${texts.preset} ${run.preset}` : "";
    list.append(element("li", `${run.benchmark}, ${run.split}, ${run.track}: ${count}${preset}`));
  }
  box.append(element("p", texts.passed), list, element("p", `${texts.place} ${preview.position} · ${texts.done_in} ${time(preview.seconds)}`));
  outcome.replaceChildren(box);
}

function showError(error) {
  const told = error instanceof Refusal ? error.message : texts.no_answer;
  outcome.replaceChildren(element("p", told, { class: "error" }));
}

async function check() {
  clearTimeout(waiting);
  const mine = ++latest;
  outcome.replaceChildren(element("p", texts.checking, { class: "quiet" }));
  try {
    const answer = await post("/submit/check", { document: written() });
    if (mine !== latest) return;
    answer.passed ? showPreview(answer.preview) : showRefusals(answer.refusals);
  } catch (error) {
    if (mine === latest) showError(error);
  }
}

async function send(event) {
  event.preventDefault();
  clearTimeout(waiting);
  latest += 1;
  const button = document.getElementById("send");
  if (button.disabled) return;
  button.disabled = true;
  outcome.replaceChildren(element("p", texts.sending, { class: "quiet" }));
  try {
    // By hand, since a refusal here lists its rules beside its sentence.
    const answer = await fetch("/submit", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Podeval": "1" },
      body: JSON.stringify({ document: written() }),
    });
    const content = await answer.json();
    if (answer.ok) return location.assign(content.address);
    if (content.refusals) showRefusals(content.refusals);
    else showError(new Refusal(answer.status, content.reason, content.error, 0));
  } catch {
    showError(new NoAnswer());
  }
  button.disabled = false;
}

/** Checked by itself once everything that must be there is, and nothing was changed for a moment. */
function changed() {
  clearTimeout(waiting);
  const whole = entries().every((field) => !field.required || field.value.trim());
  if (whole && form.querySelector("[data-benchmark]:checked")) waiting = setTimeout(check, PAUSE);
}

function chooseKind() {
  for (const part of form.querySelectorAll("[data-kind]")) part.hidden = part.dataset.kind !== kind();
}

form.addEventListener("input", changed);
form.addEventListener("change", (event) => {
  if (event.target.name === "kind") chooseKind();
});
form.addEventListener("submit", send);
document.getElementById("check").addEventListener("click", check);
chooseKind();
