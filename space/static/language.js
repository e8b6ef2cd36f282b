// Gradio uses the browser's language; make it use the language of the page, under the name of Gradio's own locale.
Object.defineProperty(navigator, "language", {
  get: () => (document.documentElement.lang.startsWith("zh") ? "zh-CN" : "en"),
});
