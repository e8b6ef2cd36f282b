// What is wrong with the page as it is shown: a list of sentences.
() => {
  const wrong = [];
  const shown = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })
    && !e.closest("[aria-hidden=true], .visually-hidden, .skip");
  const where = (e) => `${e.tagName.toLowerCase()}${e.id ? "#" + e.id : ""}.${e.className}`;
  const nameOf = (e) => {
    const by = (e.getAttribute("aria-labelledby") || "").split(" ").map((id) => document.getElementById(id)?.textContent || "").join("");
    return (e.getAttribute("aria-label") || by || [...(e.labels || [])].map((l) => l.textContent).join("") || e.textContent || e.title || "").trim();
  };
  for (const e of document.querySelectorAll("button, a[href], input, select, textarea, progress, audio, canvas, summary, [role]")) {
    if (shown(e) && !["presentation", "none", "status", "alert"].includes(e.getAttribute("role")) && !nameOf(e)) wrong.push(`no name: ${where(e)}`);
  }
  // Gradio leaves empty ids on elements, which name nothing.
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id).filter(Boolean);
  ids.forEach((id, n) => { if (ids.indexOf(id) !== n) wrong.push(`id twice: ${id}`); });
  for (const e of document.querySelectorAll("[aria-labelledby], [aria-describedby], label[for]")) {
    for (const id of (e.getAttribute("aria-labelledby") || e.getAttribute("aria-describedby") || e.htmlFor).split(" "))
      if (!document.getElementById(id)) wrong.push(`nothing has the id ${id}`);
  }
  for (const e of document.querySelectorAll("[role=slider]"))
    for (const name of ["aria-valuenow", "aria-valuemin", "aria-valuemax"])
      if (!e.hasAttribute(name)) wrong.push(`slider without ${name}`);
  if (document.querySelectorAll("h1").length !== 1) wrong.push("not one h1");
  if (!document.documentElement.lang) wrong.push("no language");
  if (!document.title) wrong.push("no title");
  if (document.querySelectorAll("main").length !== 1) wrong.push("not one main");
  let before = 0;
  for (const e of document.querySelectorAll("h1, h2, h3, h4")) {
    if (!shown(e)) continue;
    const level = Number(e.tagName[1]);
    if (level > before + 1) wrong.push(`heading skips to ${e.tagName}: ${e.textContent}`);
    before = level;
  }
  for (const e of document.querySelectorAll("th")) if (!e.scope) wrong.push(`a header without scope: ${e.textContent}`);
  for (const e of document.querySelectorAll("button, select, input, summary")) {
    const box = e.getBoundingClientRect();
    if (shown(e) && e.type !== "checkbox" && (box.width < 24 || box.height < 24)) wrong.push(`target of ${box.width}x${box.height}: ${where(e)}`);
  }
  const parsed = (colour) => {
    const parts = colour.match(/[\d.]+/g).map(Number);
    return { rgb: parts.slice(0, 3), alpha: parts[3] ?? 1 };
  };
  const light = (rgb) => rgb.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const ground = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const { rgb, alpha } = parsed(getComputedStyle(at).backgroundColor);
      if (alpha > 0.99) return rgb;
    }
    return [255, 255, 255];
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || !shown(e) || e.closest("script, noscript, :disabled, option, audio")) continue;
    const style = getComputedStyle(e);
    const svg = e.closest("svg");
    const [one, two] = [light(parsed(svg ? style.fill : style.color).rgb), light(ground(svg ? svg.parentElement : e))].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (two + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (contrast < (large ? 3 : 4.5)) wrong.push(`contrast ${contrast.toFixed(2)}: ${where(e)} "${texts.currentNode.textContent.trim().slice(0, 30)}"`);
  }
  if (document.documentElement.scrollWidth > innerWidth) wrong.push(`${document.documentElement.scrollWidth} px wide in ${innerWidth}`);
  return [...new Set(wrong)];
}
