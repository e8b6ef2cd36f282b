// The leaderboard, drawn from one JSON document: first the one in the page, then those from /board.json.
// Every choice has an address. Choices that need no new numbers (sort, filters, columns, pins) are applied here at once.
import { byId, fill, make } from "./page.js";
import { get, insist } from "./server.js";

const FILTERS = ["openness", "size", "licence", "language", "provenance", "spoken"];
const NO_CHOICE = Object.fromEntries(["q", "controls", "protocols", ...FILTERS].map((name) => [name, ""]));
const OF_TABLE = ["rows", "column_page", "columns", "dimension"]; // choices that do not affect a picture
const LOCAL = [...FILTERS, ...OF_TABLE.slice(0, 3), "controls", "q", "pins", "sort", "plot", "of"];
const MOST_ROWS = 100;
const COLUMNS = 8;
const MOST_PINS = 6;
const narrow = matchMedia("(max-width: 48rem)");
let data, texts, root, view, loaded, pictured;
let unfolded = false;

const list = (name) => (view.get(name) ?? "").split(",").filter(Boolean);
const written = (query) => query.toString().replaceAll("%2C", ",").replaceAll("%2F", "/").replaceAll("%40", "@");
const only = (query, wanted) => written(new URLSearchParams([...query].filter(([name]) => wanted(name))));
const place = (query) => only(query, (name) => !LOCAL.includes(name) && !(data?.still && name === "dimension"));
const picture = (query, small = narrow.matches) =>
  only(query, (name) => !OF_TABLE.includes(name)) + (small ? "&width=narrow" : "");

/** Return the address of the view with some choices changed. */
function to(changed) {
  const next = new URLSearchParams(view);
  for (const [name, value] of Object.entries(changed)) value ? next.set(name, value) : next.delete(name);
  return `?${written(next)}`;
}

const link = (changed, attributes, ...text) => make("a", { href: to(changed), ...attributes }, ...text);
const button = (attributes, ...text) => make("button", { type: "button", ...attributes }, ...text);
const fold = (id, title, ...content) => make("details", { id }, make("summary", {}, title), ...content);
const current = (here) => ({ "aria-current": here && "true" });
const p = (...content) => make("p", {}, ...content);
const quiet = (text) => make("p", { class: "quiet" }, text);

function plain(heads, rows, label) {
  const cells = ([first, ...rest]) => [
    make("th", { scope: "row" }, first),
    rest.map((text, at) => make("td", { "data-label": heads[at + 1] }, text)),
  ];
  return make("div", { class: "fold" }, make("table", { "aria-label": label },
    make("thead", {}, make("tr", {}, heads.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, ...cells(row))))));
}

const select = (attributes, options) =>
  make("select", attributes, options.map(([value, text]) => make("option", { value }, text)));
const find = (row, column) => column && row.cells[data.columns.indexOf(column)];

function findColumns() {
  const dimension = data.still ? view.get("dimension") || "overview" : "all";
  const isInside = ({ headline, dimension: own }) =>
    dimension === "all" || (dimension === "overview" ? headline : own.split(".")[0] === dimension);
  const inside = data.columns.filter(isInside);
  const some = inside.filter(({ id }) => list("columns").includes(id));
  return some.length ? some : inside;
}

function passes(row, pins) {
  const words = (view.get("q") ?? "").toLowerCase().split(/\s+/);
  const fits = (name) => !list(name).length || row.facts[name].some((value) => list(name).includes(value));
  const isHidden = row.kind === "control" && view.get("controls") === "0";
  const isFound = words.every((word) => row.search.includes(word));
  return pins.includes(row.id) || (!isHidden && isFound && FILTERS.every(fits));
}

/** Choose the rows and columns to show, and their order. */
function arrange() {
  const columns = findColumns();
  const wish = view.get("sort") ?? "";
  const sign = wish.startsWith("-") ? -1 : 1;
  const by = columns.find(({ id }) => id === wish.replace(/^-/, "")) ?? columns[0];
  const sorting = wish.endsWith("system") ? null : by;
  const pins = list("pins").slice(0, MOST_PINS);
  const weigh = (row) => {
    const cell = find(row, sorting);
    const isValued = cell?.value !== undefined;
    // The badness of a value; for a figure with an ideal range, its distance from that range.
    const badness = isValued && (cell.off ?? (sorting.better === "lower" ? cell.value : -cell.value));
    const isBehind = Boolean(sorting) && (!isValued || Boolean(cell.behind));
    const pin = pins.includes(row.id) ? pins.indexOf(row.id) : pins.length;
    return [pin, row.kind === "control", isBehind, isValued ? sign * badness : Infinity];
  };
  const compare = ([one, row], [other, next]) => {
    const at = one.findIndex((part, number) => part !== other[number]);
    return at < 0 ? (wish === "-system" ? -1 : 1) * row.name.localeCompare(next.name) : one[at] - other[at];
  };
  const order = (rows) => rows.map((row) => [weigh(row), row]).sort(compare).map(([, row]) => row);
  const valued = data.rows.filter((row) => columns.some((column) => find(row, column)));
  const kept = valued.filter((row) => passes(row, pins));
  const groups = ["measured", "folded", "reported"].map((group) => {
    const rows = kept.filter((row) => row.group === group);
    // A paper's rows keep the paper's order unless the reader chooses another.
    return [group, group === "reported" && !wish && !pins.length ? rows : order(rows)];
  });
  const ranked = kept.some(({ group }) => group !== "reported");
  return { columns, sorting, sign, pins, groups, ranked, total: valued.length, shown: kept.length };
}

function drawHead(column, { sorting, sign }) {
  const isHere = column === sorting && (view.has("sort") || data.rows.some(({ group }) => group !== "reported"));
  // The first click puts the best values first: the smallest ones if lower is better.
  const rises = (column.better === "lower") === (sign > 0);
  const sort = isHere && sign > 0 ? `-${column.id}` : column.id;
  const about = { class: "info", "data-column": column.id, "aria-label": fill(texts.about_column, [column.title]) };
  const name = { id: `s-${column.id}`, title: column.tip, class: column.title.length > 20 && "long" };
  return make("th", { scope: "col", class: "number", "aria-sort": isHere && (rises ? "ascending" : "descending") },
    make("span", { class: "head" }, link({ sort }, name, column.title),
      isHere && make("span", { class: "sorted", "aria-hidden": "true" }, rises ? "▲" : "▼"), button(about, "i")));
}

function drawCell(column, content) {
  const label = { "data-label": column.title };
  if (!content) return make("td", { class: "n none", ...label }, "–");
  const { number, interval, note, why, word, best, place: rank, tied, value } = content;
  const because = (text) => (why ? button({ class: "why", "data-why": why }, text) : text);
  const title = [number, interval, note, rank && `${texts.place} ${rank}`, tied && word].filter(Boolean).join(" · ");
  return make("td", { class: `n${best ? " best" : ""}${value === undefined ? " quiet" : ""}`, ...label, title },
    value === undefined ? because(number) : make("span", { class: "value" }, number),
    interval && [" ", make("small", {}, interval)], word && !tied && [" ", make("small", {}, because(word))]);
}

function drawName(row, ranked, pins) {
  const { id, name, sound, page, stated, marks, missing } = row;
  const isPinned = pins.includes(id);
  const changed = { pins: (isPinned ? pins.filter((each) => each !== id) : [...pins, id]).join(",") };
  const pin = fill(isPinned ? texts.unpin : texts.pin, [name]);
  const hear = fill(texts.hear, [name]);
  const player = { class: "hear", "data-sound": sound, "aria-label": hear, title: hear };
  return make("th", { scope: "row" }, make("span", { class: "system" },
    sound ? button(player) : ranked && make("span", { class: "hear none" }),
    make(page ? "a" : "span", { class: "name", href: page || null, title: `${name} · ${stated}` }, name),
    marks.map((mark) => make("small", { class: "mark" }, mark)),
    missing.length > 0 && button({ class: "why", "data-why": missing[1] }, missing[0]),
    link(changed, { class: "pin", id: `pin-${id}`, "aria-label": pin, title: pin }, isPinned ? "★" : "☆")));
}

function drawRow(row, { columns, sorting, pins }, ranked) {
  const content = find(row, sorting);
  const none = row.group === "reported" ? "" : content?.tied ? content.word : "–";
  const rank = content?.place ? make("b", {}, content.place) : make("small", { title: texts.no_place }, none);
  return make("tr", { class: pins.includes(row.id) && "pinned" }, ranked && make("td", { class: "place" }, rank),
    drawName(row, ranked, pins), columns.map((column) => drawCell(column, find(row, column))));
}

function drawGroup([group, rows], chosen, ranked, most) {
  const isFolded = group === "folded" && !unfolded;
  const unfolding = { class: "plain", id: "fold-controls", "aria-expanded": String(unfolded), "aria-controls": group };
  const title = group === "folded" ? button(unfolding, data.groups[group]) : data.groups[group];
  const head = make("th", { scope: "rowgroup", colspan: chosen.columns.length + 1 + ranked }, title);
  const drawn = isFolded ? [] : rows.slice(0, most).map((row) => drawRow(row, chosen, ranked));
  const body = make("tbody", { id: group, hidden: isFolded }, drawn);
  return [make("tbody", { class: "group" }, make("tr", {}, head)), body];
}

function drawColumnPages(count, pages, page) {
  const numbers = Array.from({ length: pages }, (_, at) => link(
    { column_page: at ? String(at + 1) : "" }, { id: `columns-${at + 1}`, ...current(at + 1 === page) },
    `${at * COLUMNS + 1}–${Math.min((at + 1) * COLUMNS, count)}`));
  const words = [texts.columns, fill(texts.of_columns, [count])].map((text) => make("span", { class: "quiet" }, text));
  return make("nav", { class: "column-pages", "aria-label": texts.columns }, words[0], numbers, words[1]);
}

function drawTable(chosen) {
  const pages = Math.ceil(chosen.columns.length / COLUMNS);
  const page = Math.min(Math.max(view.get("column_page") || 1, 1), pages);
  const some = { ...chosen, columns: chosen.columns.slice((page - 1) * COLUMNS, page * COLUMNS) };
  const groups = chosen.groups.filter(([, rows]) => rows.length);
  const all = view.get("rows") === "all";
  let left = all ? Infinity : MOST_ROWS;
  const bodies = groups.map((group) => {
    const bodies = drawGroup(group, some, chosen.ranked, left);
    left -= bodies[1].childElementCount;
    return bodies;
  });
  const wish = view.get("sort") ?? "";
  const falls = wish === "-system";
  const byName = { scope: "col", "aria-sort": wish.endsWith("system") && (falls ? "descending" : "ascending") };
  const more = all ? fill(texts.fewer, [MOST_ROWS]) : fill(texts.more, [chosen.shown]);
  return [
    pages > 1 && drawColumnPages(chosen.columns.length, pages, page),
    make("div", { id: "table", class: "cards" }, make("table", { class: "board" },
      make("caption", { class: "visually-hidden" }, `${texts.table}: ${data.where}`),
      make("thead", {}, make("tr", {}, chosen.ranked && make("th", { scope: "col", class: "place" }, texts.place),
        make("th", byName, link({ sort: wish === "system" ? "-system" : "system" }, { id: "s-system" }, texts.system)),
        some.columns.map((column) => drawHead(column, chosen)))),
      bodies)),
    chosen.shown > MOST_ROWS && p(link({ rows: all ? "" : "all" }, { class: "button second", id: "more" }, more)),
  ];
}

function drawPlots({ columns }) {
  const plot = data.still && view.get("plot") in data.still.pictures ? view.get("plot") : data.plot;
  const drawn = data.still ? data.still.pictures[plot] : data.picture;
  const offered = data.plots.map(([id, text]) => link({ plot: id }, { id: `p-${id}`, ...current(id === plot) }, text));
  const of = select({ id: "of", name: "of", form: "choices" }, columns.map(({ id, title }) => [id, title]));
  of.value = data.plot_of;
  const fields = make("div", { class: "plot-fields" },
    make("nav", { class: "chips", "aria-label": texts.plots }, offered),
    !data.still && columns.length > 1 && make("div", {}, make("label", { for: "of" }, `${texts.of} `), of));
  if (!drawn) return make("section", { id: "drawn" }, fields, quiet(data.no_picture));
  const svg = new DOMParser().parseFromString(drawn.svg, "image/svg+xml").documentElement;
  return make("section", { id: "drawn", "aria-label": texts.plots }, fields,
    make("figure", { class: `plot ${plot}` }, svg, make("figcaption", {}, [drawn.caption, ...drawn.notes].join(" "))),
    fold("numbers", texts.as_table, plain(drawn.headers, drawn.rows, texts.as_table)));
}

function drawFields() {
  const tick = (name, value, text) =>
    make("label", { class: "tick" }, make("input", { type: "checkbox", name, id: `f-${name}-${value}`, value }), text);
  const field = ({ name, kind, label, options }) => {
    const legend = make("legend", { class: "visually-hidden" }, label);
    const ticks = () => make("fieldset", {}, legend, options.map(([value, text]) => tick(name, value, text)));
    if (kind === "ticks") return fold(`f-${name}`, label, ticks());
    const typed = { type: "search", name, id: name, maxlength: "100", autocomplete: "off" };
    const input = kind === "select" ? select({ name, id: name }, options) : make("input", typed);
    return make("div", { class: "field" }, make("label", { for: name }, label), input);
  };
  return [...data.fields.map(field), tick("controls", "0", texts.hide_controls)];
}

const drawNothing = (title, sentences) =>
  make("div", { class: "card", id: "nothing" }, make("h2", {}, title), sentences.map((text) => p(text)));

/** Draw the places and the form, which stay until other numbers arrive. */
function drawFrame() {
  root.querySelector(".places").hidden = Boolean(data.nothing);
  if (data.nothing) {
    const [title, ...sentences] = data.nothing;
    return byId("view").replaceChildren(drawNothing(title, sentences));
  }
  const boards = data.boards.map(([board, text]) => {
    const href = data.still ? board : `?${written(new URLSearchParams({ board }))}`;
    return make("a", { href, ...current(board === data.place.board) }, text);
  });
  root.querySelector(".board-list").replaceChildren(...boards);
  byId("choices").replaceChildren(...drawFields());
}

function drawFiles({ pins: [a, b] }) {
  const place = { a, b, benchmark: `${data.place.board}/${data.place.profile}` };
  const files = data.still?.files ?? ["csv", "parquet"].map((kind) => [texts[kind], `/board.${kind}${to({})}`]);
  const whole = data.still ? to({}) : to({ protocols: data.protocol_ids.join(",") });
  const compare = `/compare${b ? `?${new URLSearchParams(place)}` : ""}`;
  return make("div", { class: "take" },
    !data.still && make("a", { class: "button second", id: "compare", href: compare }, texts.compare),
    files.map(([text, href]) => make("a", { class: "button second", href, download: true }, text)),
    make("a", { class: "button second", id: "whole-link", href: whole }, texts.whole_link));
}

function drawMore() {
  const { cite, protocols, elsewhere } = data;
  const out = (href, text) => make("a", { href, rel: "noopener" }, text);
  const drawElsewhere = ({ address, title, by, about, heads, rows }) =>
    fold(`elsewhere-${address}`, title, p(out(address, by)), about.map(quiet), plain(heads, rows, title));
  return [
    fold("protocols", texts.protocols_of, plain(protocols.heads, protocols.rows, texts.protocols_of)),
    cite && fold("cite", texts.cite, p(out(cite.paper, cite.paper)), make("pre", {}, cite.citation)),
    ...elsewhere.map(drawElsewhere),
  ];
}

/** Redraw, restoring the focus and keeping open sections open. */
function keeping(draw) {
  const focused = document.activeElement?.id;
  const open = [...root.querySelectorAll("details[open]")].map(({ id }) => id);
  draw();
  for (const id of open) byId(id)?.setAttribute("open", "");
  if (focused && document.activeElement === document.body) byId(focused)?.focus({ preventScroll: true });
}

/** Redraw everything (`whole`), or only the parts that depend on a choice. */
function draw(whole = false) {
  if (whole) drawFrame();
  if (data.nothing) return;
  for (const input of root.querySelectorAll("#choices :is(input, select)")) {
    if (input.type === "checkbox") input.checked = list(input.name).includes(input.value);
    else if (input !== document.activeElement) input.value = view.get(input.name) ?? data.place[input.name] ?? "";
  }
  const chosen = arrange();
  const dimension = ((data.still ? view.get("dimension") : data.place.dimension) || "overview").split(".")[0];
  const unset = { columns: "", sort: "", of: "", column_page: "" };
  const tabs = data.dimensions.map(([id, text], at) =>
    link({ dimension: id, ...unset }, { id: `d-${at + 1}`, ...current(id === dimension) }, text));
  const count = make("strong", {}, fill(texts.status, [chosen.shown, chosen.total]));
  const by = chosen.ranked && chosen.sorting && ` · ${fill(texts.place_by, [chosen.sorting.title])}`;
  const [text, correction] = data.correction ?? [];
  byId("view").replaceChildren(...[
    make("nav", { class: "board-tabs", "aria-label": texts.view }, tabs),
    data.notices.map((sentence) => make("p", { class: "notice", role: "status" }, sentence)),
    data.cite && quiet(data.cite.about),
    make("p", { id: "board-status", role: "status" }, count, " ", make("span", { class: "quiet" }, data.where, by),
      " ", Object.keys(NO_CHOICE).some((name) => view.get(name)) && link(NO_CHOICE, { id: "reset" }, texts.reset)),
    chosen.shown ? drawTable(chosen) : drawNothing(texts.none_fit, [texts.none_fit_how]), drawFiles(chosen),
    make("p", { class: "legend quiet" }, data.legend),
    data.footing && make("p", { class: "quiet", id: "footing" }, data.footing, " ",
      !data.still && link({ correction }, { id: "correction" }, text)),
    drawPlots(chosen), drawMore(),
  ].flat().filter(Boolean));
}

/** Show a small window next to a button; a sample in it stops when the window closes. */
function tell(source, ...content) {
  byId("told").replaceChildren(...content.flat().filter(Boolean));
  byId("told").showPopover({ source });
}

function explain(source, { title, about: [sentences, facts, card] }) {
  const rows = facts.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)));
  const more = card && !data.still && p(make("a", { href: card }, texts.card));
  tell(source, make("strong", {}, title), sentences.map((text) => p(text)), make("dl", {}, rows), more);
}

const ask = (query, signal) => get(`/board.json?${query}`, { cache: "default", signal });

/** Go to another view: at once if its numbers are here, otherwise when they arrive. */
async function go(next, signal) {
  const isFresh = place(next) !== loaded;
  const problem = byId("board-problem");
  const wait = (sentence) => {
    root.ariaBusy = sentence ? "true" : null;
    byId("board-loading")?.replaceChildren(sentence);
  };
  try {
    wait(isFresh ? texts.loading : "");
    if (isFresh) take(await ask(written(next), signal), next);
    view = next;
    keeping(() => draw(isFresh));
    if (problem) problem.hidden = true;
    await redraw(signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    byId("again").onclick = () => go(next);
    problem.firstElementChild.textContent = error.message || texts.offline;
    problem.hidden = false;
  } finally {
    if (!signal?.aborted) wait("");
  }
}

/** Draw the picture of the view unless it is already shown; phones get a separate picture. */
async function redraw(signal) {
  const wanted = picture(view);
  if (data.still || data.nothing || wanted === pictured) return;
  Object.assign(data, await ask(`${wanted}&part=picture`, signal));
  pictured = wanted;
  keeping(() => byId("drawn").replaceWith(drawPlots(arrange())));
}

function take(next, query) {
  data = next;
  texts = next.texts;
  loaded = place(query);
  pictured = picture(query, false);
}

function show(next) {
  take(next, view);
  draw(true);
  redraw().catch(() => {});
}

function press({ target }) {
  const pressed = target.closest("button");
  if (!pressed) return;
  const { column, why, sound: address } = pressed.dataset;
  if (address) tell(pressed, p(pressed.title), make("audio", { src: address, controls: true, autoplay: true }));
  if (column) explain(pressed, data.columns.find(({ id }) => id === column));
  if (why) tell(pressed, p(why));
  if (pressed.id === "fold-controls") keeping(() => { unfolded = !unfolded; draw(); });
}

function change({ target: { name, form } }) {
  if (!form) return;
  const changed = { [name]: new FormData(form).getAll(name).join(",") };
  // The columns chosen earlier were for other figures.
  if (name === "profile") Object.assign(changed, { columns: "", sort: "", of: "" });
  const history = name === "q" ? "replace" : "push";
  window.navigation ? navigation.navigate(to(changed), { history }) : location.assign(to(changed));
}

/** Stay on the page if a link, Back or a choice leads to another view; older browsers open the address. */
function navigate(event) {
  const { pathname, searchParams } = new URL(event.destination.url);
  const isBoard = data?.still ? pathname === location.pathname : ["/", "/leaderboard"].includes(pathname);
  const isOther = event.hashChange || event.navigationType === "reload" || event.downloadRequest !== null;
  if (!isBoard || isOther || !event.canIntercept || searchParams.get("lang") !== view.get("lang")) return;
  event.intercept({ handler: () => go(searchParams, event.signal), focusReset: "manual", scroll: "manual" });
}

function begin(element) {
  root = element;
  view = new URLSearchParams(location.search);
  root.addEventListener("click", press);
  root.addEventListener(window.navigation ? "input" : "change", change);
  window.navigation?.addEventListener("navigate", navigate);
  byId("told").addEventListener("toggle", ({ newState, target }) => newState === "closed" && target.replaceChildren());
}

/** Move the leaderboard that came with the page into its tab; request it if there is none. */
export function start(element) {
  const part = element.querySelector(".podeval-part");
  if (root) keeping(() => part.replaceChildren(root));
  else begin(part.firstElementChild);
  byId("early")?.remove();
  if (!data) insist(() => ask(written(view))).then(show);
}

const early = byId("board-data");
if (early) {
  begin(byId("board"));
  show(JSON.parse(early.textContent));
}
