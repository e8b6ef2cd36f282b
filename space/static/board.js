// The leaderboard, drawn from one JSON document: that of the page at first, then of /board.json; alone in the static board.
// Every choice is an address. What needs no other numbers (sort, filters, columns, pins) is done here, at once.
const FILTERS = ["openness", "size", "licence", "language", "provenance", "spoken"];
const LOCAL = [...FILTERS, "controls", "q", "pins", "columns", "sort", "rows", "column_page", "plot", "of"];
const OF_TABLE = ["rows", "column_page", "columns", "dimension"]; // choices that no picture depends on
const MOST_ROWS = 100, COLUMNS = 9, MOST_PINS = 6;
let data, texts, root, view, loaded, pictured, failed, asked;
let unfolded = false;

const list = (name) => (view.get(name) ?? "").split(",").filter(Boolean);
function fill(text, ...values) {
  let next = 0;
  return text.replace(/\{(\d?)\}/g, (_, at) => values[at || next++]);
}
const write = (query) => query.toString().replaceAll("%2C", ",").replaceAll("%2F", "/").replaceAll("%40", "@");
const only = (query, wanted) => write(new URLSearchParams([...query].filter(([name]) => wanted(name))));
const place = (query) => only(query, (name) => !LOCAL.includes(name) && !(data?.still && name === "dimension"));
const narrow = matchMedia("(max-width: 48rem)");
const picture = (query, small = narrow.matches) => only(query, (name) => !OF_TABLE.includes(name)) + (small ? "&width=narrow" : "");

/** An element with attributes and children; what others wrote is only ever text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false && child !== ""));
  return element;
}

/** The address of the view with some choices changed. */
function to(changed) {
  const next = new URLSearchParams(view);
  for (const [name, value] of Object.entries(changed)) value ? next.set(name, value) : next.delete(name);
  return `?${write(next)}`;
}

const link = (changed, attributes, ...children) => make("a", { href: to(changed), "data-view": true, ...attributes }, ...children);
const button = (attributes, ...children) => make("button", { type: "button", ...attributes }, ...children);
const fold = (id, title, ...children) => make("details", { id }, make("summary", {}, title), ...children);
const current = (here) => ({ "aria-current": here && "true" });

function plain(heads, rows, label) {
  const cells = ([first, ...rest]) => [
    make("th", { scope: "row" }, first),
    rest.map((text, at) => make("td", { "data-label": heads[at + 1] }, text)),
  ];
  return make("div", { class: "fold" }, make("table", { "aria-label": label },
    make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, ...cells(row))))));
}

function chooseColumns() {
  const dimension = data.still ? view.get("dimension") || "overview" : "all";
  const inside = data.columns.filter((one) => dimension === "all" || (dimension === "overview" ? one.headline : one.dimension.split(".")[0] === dimension));
  const some = inside.filter((one) => list("columns").includes(one.id));
  return some.length ? some : inside;
}

function passes(row, pins) {
  const words = (view.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const stated = (name) => !list(name).length || row.facts[name].some((value) => list(name).includes(value));
  const hidden = row.kind === "control" && view.get("controls") === "0";
  return pins.includes(row.id) || (!hidden && words.every((word) => row.search.includes(word)) && FILTERS.every(stated));
}

/** How bad a value is in a column: smaller is better. */
function rate({ better, ideal }, value) {
  if (better === "in range" && ideal) return Math.max(ideal[0] - value, value - ideal[1], 0);
  return better === "lower" ? value : -value;
}

/** Which rows and columns are shown, in which order. */
function choose() {
  const columns = chooseColumns(), wish = view.get("sort") ?? "", sign = wish.startsWith("-") ? -1 : 1;
  const sorting = wish.endsWith("system") ? null : columns.find((one) => one.id === wish.replace(/^-/, "")) ?? columns[0];
  const pins = list("pins").slice(0, MOST_PINS);
  const key = (row) => {
    const cell = sorting && row.cells[data.columns.indexOf(sorting)], pin = pins.indexOf(row.id);
    const valued = cell?.value !== undefined;
    const behind = Boolean(sorting) && (!valued || Boolean(cell.behind));
    return [pin < 0 ? pins.length : pin, row.kind === "control", behind, valued ? sign * rate(sorting, cell.value) : Infinity];
  };
  const before = ([a, one], [b, other]) => {
    const at = a.findIndex((part, number) => part !== b[number]);
    return at < 0 ? (wish === "-system" ? -1 : 1) * one.name.localeCompare(other.name) : a[at] - b[at];
  };
  const order = (rows) => rows.map((row) => [key(row), row]).sort(before).map(([, row]) => row);
  const valued = data.rows.filter((row) => columns.some((one) => row.cells[data.columns.indexOf(one)]));
  const kept = valued.filter((row) => passes(row, pins));
  const groups = ["measured", "folded", "reported"].map((name) => {
    const rows = kept.filter((row) => row.group === name);
    // A paper's rows are in the paper's order unless somebody asks for another.
    return [name, name === "reported" && !wish && !pins.length ? rows : order(rows)];
  });
  return { columns, sorting, sign, pins, groups, total: valued.length, shown: kept.length };
}

function head(column, { sorting, sign }) {
  const here = column === sorting && data.rows.some((row) => row.group !== "reported" || view.has("sort"));
  // The best are first at the first click: of what is better lower, the smallest.
  const rises = (column.better === "lower") === (sign > 0);
  const sort = here && (rises ? "ascending" : "descending");
  return make("th", { scope: "col", class: "number", "aria-sort": sort }, make("span", { class: "head" },
    link({ sort: here && sign > 0 ? `-${column.id}` : column.id }, { id: `s-${column.id}`, title: column.tip }, column.title),
    here && make("span", { class: "sorted", "aria-hidden": "true" }, rises ? "▲" : "▼"),
    button({ class: "info", "data-column": column.id, "aria-label": fill(texts.about_column, column.title) }, "i")));
}

function cell(column, content) {
  if (!content) return make("td", { class: "n none", "data-label": column.title }, "–");
  const { number, interval, note, why, word, best, place: rank, tied, value } = content;
  const because = (text) => (why ? button({ class: "why", "data-why": why }, text) : text);
  const title = [number, interval, note, rank && `${texts.place} ${rank}`, tied && word].filter(Boolean).join(" · ");
  return make("td", { class: `n${best ? " best" : ""}${value === undefined ? " quiet" : ""}`, "data-label": column.title, title },
    value === undefined ? because(number) : make("span", { class: "value" }, number),
    interval && make("small", {}, ` ${interval}`),
    word && !tied && make("small", {}, " ", because(word)));
}

function name(row, ranked, pins) {
  const pinned = pins.includes(row.id), others = pins.filter((each) => each !== row.id);
  const pin = fill(pinned ? texts.unpin : texts.pin, row.name), hearing = fill(texts.hear, row.name);
  const player = { class: "hear", "data-sound": row.sound, "aria-pressed": "false", "aria-label": hearing, title: hearing };
  return make("th", { scope: "row" }, make("span", { class: "system" },
    row.sound ? button(player, make("span", { "aria-hidden": "true" }, "▶")) : ranked && make("span", { class: "hear none" }),
    make(row.page ? "a" : "span", { class: "name", href: row.page || null, title: row.stated }, row.name),
    row.marks.map((mark) => make("small", { class: "mark" }, mark)),
    row.missing.length > 0 && button({ class: "why", "data-why": row.missing[1] }, row.missing[0]),
    link({ pins: (pinned ? others : [...pins, row.id]).join(",") }, { class: "pin", id: `pin-${row.id}`, "aria-label": pin, title: pin }, pinned ? "★" : "☆")));
}

function line(row, { columns, sorting, pins }, ranked) {
  const content = sorting && row.cells[data.columns.indexOf(sorting)];
  const none = row.group === "reported" ? "" : content?.tied ? content.word : "–";
  const rank = content?.place ? make("b", {}, content.place) : make("small", { title: texts.no_place }, none);
  return make("tr", { class: pins.includes(row.id) && "pinned" }, ranked && make("td", { class: "place" }, rank), name(row, ranked, pins),
    columns.map((column) => cell(column, row.cells[data.columns.indexOf(column)])));
}

function body([group, rows], chosen, ranked, left) {
  const closed = group === "folded" && !unfolded;
  const unfolding = { class: "plain", id: "fold-controls", "aria-expanded": String(unfolded), "aria-controls": group };
  const title = group === "folded" ? button(unfolding, data.groups[group]) : data.groups[group];
  const width = chosen.columns.length + 1 + ranked;
  return [
    make("tbody", { class: "group" }, make("tr", {}, make("th", { scope: "rowgroup", colspan: width }, title))),
    make("tbody", { id: group, hidden: closed }, closed ? [] : rows.slice(0, left).map((row) => line(row, chosen, ranked))),
  ];
}

function columnPages(count, pages, page) {
  const numbers = Array.from({ length: pages }, (_, at) => link({ column_page: at ? String(at + 1) : "" }, { id: `columns-${at + 1}`, ...current(at + 1 === page) },
    `${at * COLUMNS + 1}–${Math.min((at + 1) * COLUMNS, count)}`));
  const quiet = (text) => make("span", { class: "quiet" }, text);
  return make("nav", { class: "column-pages", "aria-label": texts.columns }, quiet(texts.columns), numbers, quiet(fill(texts.of_columns, count)));
}

function table(chosen) {
  const pages = Math.ceil(chosen.columns.length / COLUMNS), page = Math.min(Math.max(view.get("column_page") || 1, 1), pages);
  const some = { ...chosen, columns: chosen.columns.slice((page - 1) * COLUMNS, page * COLUMNS) };
  const groups = chosen.groups.filter(([, rows]) => rows.length), ranked = groups.some(([group]) => group !== "reported");
  const wish = view.get("sort") ?? "", all = view.get("rows") === "all";
  let left = all ? Infinity : MOST_ROWS;
  const bodies = groups.flatMap(([group, rows]) => {
    const parts = body([group, rows], some, ranked, left);
    left -= Math.min(left, parts[1].childElementCount);
    return parts;
  });
  const by_name = wish.endsWith("system") && (wish[0] === "-" ? "descending" : "ascending");
  const by = chosen.sorting && fill(texts.place_by, chosen.sorting.title);
  return [
    pages > 1 && columnPages(chosen.columns.length, pages, page),
    make("div", { id: "table", class: "cards" }, make("table", { class: "board" },
      make("caption", { class: "visually-hidden" }, `${texts.table}: ${data.where}`),
      make("thead", {}, make("tr", {}, ranked && make("th", { scope: "col", class: "place", title: by }, texts.place),
        make("th", { scope: "col", "aria-sort": by_name }, link({ sort: wish === "system" ? "-system" : "system" }, { id: "s-system" }, texts.system)),
        some.columns.map((one) => head(one, chosen)))),
      bodies)),
    chosen.shown > MOST_ROWS && make("p", {}, link({ rows: all ? "" : "all" }, { class: "button second", id: "more" }, all ? fill(texts.fewer, MOST_ROWS) : fill(texts.more, chosen.shown))),
  ];
}

function options(select, choices, chosen) {
  select.append(...choices.map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
  return select;
}

function plots(chosen) {
  const plot = data.still && view.get("plot") in data.still.pictures ? view.get("plot") : data.plot;
  const drawn = data.still ? data.still.pictures[plot] : data.picture;
  const svg = drawn && document.importNode(new DOMParser().parseFromString(drawn.svg, "image/svg+xml").documentElement, true);
  const offered = data.plots.map(([id, text]) => link({ plot: id }, { id: `p-${id}`, ...current(id === plot) }, text));
  const of = options(make("select", { id: "of", name: "of" }), chosen.columns.map((one) => [one.id, one.title]), data.plot_of);
  return make("section", { id: "drawn", "aria-label": texts.plots },
    make("div", { class: "plot-fields" }, make("nav", { class: "chips", "aria-label": texts.plots }, offered),
      !data.still && chosen.columns.length > 1 && make("div", {}, make("label", { for: "of" }, `${texts.of} `), of)),
    !drawn && make("p", { class: "quiet" }, data.no_picture),
    drawn && make("figure", { class: `plot ${plot}` }, svg, make("figcaption", {}, [drawn.caption, ...drawn.notes].join(" "))),
    drawn && fold("numbers", texts.as_table, plain(drawn.headers, drawn.rows, texts.as_table)));
}

function chips() {
  const field = (id) => data.fields.find((each) => each.name === id);
  const chip = (text, changed) => link(changed, {}, `${text} `, make("span", { "aria-hidden": "true" }, "×"), make("span", { class: "visually-hidden" }, texts.remove));
  const used = FILTERS.filter(field).flatMap((id) => list(id).map((value) => {
    const title = field(id).options.find(([each]) => each === value)?.[1] ?? value;
    return chip(`${field(id).label}: ${title}`, { [id]: list(id).filter((each) => each !== value).join(",") });
  }));
  if (view.get("q")) used.push(chip(`“${view.get("q")}”`, { q: "" }));
  if (view.get("controls") === "0") used.push(chip(texts.hide_controls, { controls: "" }));
  const none = Object.fromEntries([...FILTERS, "q", "controls"].map((id) => [id, ""]));
  return used.length > 0 && make("p", { class: "chips", "aria-label": texts.active }, used, link(none, { class: "all" }, texts.reset));
}

function form() {
  const tick = (id, value, text, at) => make("label", { class: "tick" }, make("input", { type: "checkbox", name: id, id: `f-${id}-${at}`, value }), text);
  const field = ({ name: id, kind, label, options: choices }) => {
    if (kind === "ticks") {
      const ticks = choices.map(([value, text], at) => tick(id, value, text, at));
      return fold(`f-${id}`, label, make("fieldset", {}, make("legend", { class: "visually-hidden" }, label), ticks));
    }
    const input = kind === "select" ? options(make("select", { name: id, id }), choices) : make("input", { type: "search", name: id, id, maxlength: "100", autocomplete: "off" });
    return make("div", { class: "field" }, make("label", { for: id }, label), input);
  };
  const fields = data.fields.filter((one) => !data.still || one.local).map(field);
  return fold("fold-choices", texts.choices, make("form", { id: "choices" }, fields, tick("controls", "0", texts.hide_controls, 0)));
}

/** What this is, the ways in, and the places: what stays until other numbers come. */
function drawFrame() {
  const ways = [["/arena", texts.go_vote], ["/score", texts.go_score], ["/submit", texts.go_submit]].map(([address, text], at) =>
    make("a", { class: `button${at ? " second" : ""}`, href: address }, text));
  const intro = make("div", { class: "intro" }, make("div", {}, make("h1", {}, texts.title), make("p", { class: "pitch" }, texts.intro)),
    !data.still && make("div", { class: "ways" }, ways));
  root.replaceChildren(intro);
  if (data.nothing) {
    const [title, ...sentences] = data.nothing;
    root.append(make("div", { class: "card", id: "nothing" }, make("h2", {}, title), sentences.map((text) => make("p", {}, text))));
    return;
  }
  const boards = data.boards.map(([board, text]) => make("a", {
    href: data.still ? board : `?board=${write(new URLSearchParams([["", board]])).slice(1)}`, "data-view": !data.still, ...current(board === data.place.board) }, text));
  root.append(
    make("div", { class: "places" }, make("nav", { class: "board-list chips", "aria-label": texts.benchmark }, boards), form()),
    make("p", { id: "board-problem", class: "notice", role: "alert", hidden: true }, make("span"), " ", button({ class: "second" }, texts.retry)),
    make("div", { id: "view" }),
    make("p", { id: "board-loading", class: "visually-hidden", role: "status" }),
    make("div", { id: "told", class: "explained", popover: "auto", role: "dialog", "aria-label": texts.meanings }));
}

function drawFiles(chosen) {
  const [a, b] = chosen.pins, where = `${data.place.board}/${data.place.profile}`;
  const pair = b ? `?${new URLSearchParams({ a, b, benchmark: where })}` : "";
  const files = data.still?.files ?? [[texts.csv, `/board.csv?${write(view)}`], [texts.parquet, `/board.parquet?${write(view)}`]];
  const address = data.still ? `?${write(view)}` : to({ protocols: data.protocol_ids.join(",") });
  return make("div", { class: "take" },
    !data.still && make("a", { class: "button second", id: "compare", href: `/compare${pair}` }, texts.compare),
    files.map(([text, href]) => make("a", { class: "button second", href, download: true }, text)),
    button({ class: "second", id: "copy", "data-link": new URL(address, location.href).href }, texts.copy_link));
}

function drawMore() {
  const { cite, protocols, elsewhere } = data;
  const quiet = (text) => make("p", { class: "quiet" }, text);
  return [
    fold("protocols", texts.protocols_of, plain(protocols.heads, protocols.rows, texts.protocols_of)),
    cite && fold("cite", texts.cite, make("p", {}, `${cite.about} `, make("a", { href: cite.paper, rel: "noopener" }, cite.paper)), make("pre", {}, cite.citation)),
    elsewhere.map((one) => fold(`elsewhere-${one.address}`, one.title, make("p", {}, make("a", { href: one.address, rel: "noopener" }, one.by)), one.about.map(quiet), plain(one.heads, one.rows, one.title))),
  ];
}

/** Draw all anew (`whole`), or what follows from a choice; what had the focus has it again, what was open stays open. */
function draw(whole = false) {
  const focused = document.activeElement?.id, open = [...root.querySelectorAll("details[open]")].map((details) => details.id);
  stop();
  if (whole) drawFrame();
  if (data.nothing) return;
  for (const input of root.querySelectorAll("#choices :is(input, select)")) {
    if (input.type === "checkbox") input.checked = list(input.name).includes(input.value);
    else if (input !== document.activeElement) input.value = view.get(input.name) ?? data.place[input.name] ?? "";
  }
  const chosen = choose(), dimension = ((data.still ? view.get("dimension") : data.place.dimension) || "overview").split(".")[0];
  const tabs = data.dimensions.map(([id, text], at) =>
    link({ dimension: id, columns: "", sort: "", of: "", column_page: "" }, { id: `d-${at + 1}`, ...current(id === dimension) }, text));
  const status = make("p", { id: "board-status", role: "status" }, make("strong", {}, fill(texts.status, chosen.shown, chosen.total)), " ", make("span", { class: "quiet" }, data.where));
  const nothing = () => make("div", { class: "card", id: "nothing" }, make("h2", {}, texts.none_fit), make("p", {}, texts.none_fit_how));
  root.querySelector("#view").replaceChildren(...[
    make("nav", { class: "board-tabs", "aria-label": texts.view }, tabs), chips(),
    data.notices.map((sentence) => make("p", { class: "notice", role: "status" }, sentence)), status,
    chosen.shown ? table(chosen) : nothing(), drawFiles(chosen),
    make("p", { class: "legend quiet" }, data.legend), data.footing && make("p", { class: "quiet", id: "footing" }, data.footing, " ", !data.still && link({ correction: data.correction[1] }, { id: "correction" }, data.correction[0])),
    plots(chosen), drawMore(),
  ].flat(2).filter(Boolean));
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
}

// One sample at a time, which stops when another begins, when the view changes, or when it is over.
let sound = null, heard = null;

function stop() {
  sound?.pause();
  heard?.setAttribute("aria-pressed", "false");
  if (heard) heard.firstElementChild.textContent = "▶";
  heard = null;
}

function hear(button) {
  const again = button === heard;
  stop();
  if (again) return;
  sound ??= Object.assign(new Audio(), { onended: stop, onerror: stop });
  sound.src = button.dataset.sound;
  heard = button;
  button.setAttribute("aria-pressed", "true");
  button.firstElementChild.textContent = "❚❚";
  sound.play().catch(() => heard === button && stop());
}

/** Say in a small window what a column is, or why something is missing. */
function tell(content) {
  const told = root.querySelector("#told");
  told.replaceChildren(...content.flat().filter(Boolean));
  told.showPopover();
}

function explain({ title, about: [sentences, facts, card] }) {
  const rows = facts.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)));
  const more = card && !data.still && make("p", {}, make("a", { href: card }, texts.card));
  tell([make("strong", {}, title), sentences.map((text) => make("p", {}, text)), make("dl", {}, rows), more]);
}

async function fetchJson(query, signal) {
  const answer = await fetch(`/board.json?${query}`, { signal });
  const found = await answer.json();
  if (!answer.ok && !found.nothing) throw new Error(found.sentence ?? found.error ?? texts?.failed);
  return found;
}

/** Go to another view: at once where the numbers are here, else once they are. */
async function go(next, how = "push") {
  const target = new URLSearchParams(next), problem = root.querySelector("#board-problem");
  const fresh = place(target) !== loaded;
  asked?.abort();
  const own = (asked = new AbortController());
  const slow = setTimeout(() => {
    root.setAttribute("aria-busy", "true");
    root.querySelector("#board-loading").textContent = texts.loading;
  }, 250);
  try {
    if (fresh) take(await fetchJson(write(target), own.signal), target);
    view = target;
    remember(how);
    draw(fresh);
    if (problem) problem.hidden = true;
    if (!data.still && picture(view) !== pictured) await redraw(own.signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    failed = [next, how];
    problem.firstElementChild.textContent = error instanceof TypeError ? texts.offline : error.message;
    problem.hidden = false;
  } finally {
    clearTimeout(slow);
    if (asked === own) {
      root.removeAttribute("aria-busy");
      root.querySelector("#board-loading")?.replaceChildren();
    }
  }
}

/** Put the view into the address, where there is one: a page of a folder has none. */
function remember(how) {
  if (location.protocol === "file:" || how === "stay") return;
  history[how === "push" ? "pushState" : "replaceState"](null, "", `${location.pathname}?${write(view)}`);
}

async function redraw(signal) {
  const wanted = picture(view);
  Object.assign(data, await fetchJson(`${wanted}&part=picture`, signal));
  pictured = wanted;
  const open = root.querySelector("#numbers")?.open, focused = document.activeElement?.id;
  root.querySelector("#drawn").replaceWith(plots(choose()));
  root.querySelector("#numbers")?.toggleAttribute("open", Boolean(open));
  if (document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
}

function take(found, query) {
  data = found;
  texts = found.texts;
  loaded = place(query);
  pictured = picture(query, false);
}

/** Draw what was just taken; a phone asks for a picture of its own. */
function show() {
  draw(true);
  if (!data.still && !data.nothing && picture(view) !== pictured) redraw().catch(() => {});
}

function press(event) {
  const target = event.target.closest("a[data-view], button");
  if (!target) return;
  if (target.matches("a") && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
    event.preventDefault();
    go(new URL(target.href).searchParams);
  }
  const { column, why, sound: address, link: copied } = target.dataset;
  if (address) hear(target);
  if (column) explain(data.columns.find((each) => each.id === column));
  if (why) tell([make("p", {}, why)]);
  if (target.id === "fold-controls") draw((unfolded = !unfolded) && false);
  if (copied) {
    const written = navigator.clipboard?.writeText(copied) ?? Promise.reject(new Error());
    written.then(() => { target.textContent = texts.copied; }, () => prompt(texts.copy_link, copied));
  }
  if (target.closest("#board-problem")) go(...failed);
}

function change({ target, isComposing }) {
  if (isComposing || !(target.form || target.id === "of")) return;
  const ticked = () => [...root.querySelectorAll(`#choices [name="${target.name}"]:checked`)].map((each) => each.value).join(",");
  const changed = { [target.name]: target.type === "checkbox" ? ticked() : target.value };
  // Columns chosen before were of other figures.
  if (target.name === "profile") Object.assign(changed, { columns: "", sort: "", of: "" });
  go(new URLSearchParams(to(changed)), target.name === "q" ? "replace" : "push");
}

function begin(element) {
  root = element;
  view = new URLSearchParams(location.search);
  root.addEventListener("click", press);
  root.addEventListener("submit", (event) => event.preventDefault());
  for (const kind of ["input", "compositionend"]) root.addEventListener(kind, change);
  document.addEventListener("podeval:tab", stop);
  addEventListener("popstate", () => { if (data?.still || ["/", "/leaderboard"].includes(location.pathname)) go(location.search, "stay"); });
}

/** Take the leaderboard that the page came with into its tab; without one, ask for it. */
export function start(element) {
  const tab = element.querySelector(".podeval-part"), early = document.getElementById("early");
  const focused = document.activeElement?.id;
  if (!root) begin(make("div", { id: "board" }));
  tab.replaceChildren(root);
  early?.remove();
  document.getElementById(focused)?.focus({ preventScroll: true });
  if (data) return;
  const ask = () => fetchJson(write(view)).then((found) => { take(found, view); show(); }, () => setTimeout(ask, 1_000));
  ask();
}

const given = document.getElementById("board-data");
if (given) {
  begin(document.getElementById("board"));
  take(JSON.parse(given.textContent), view);
  show();
}
