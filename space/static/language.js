// Gradio speaks the language of the browser; here it speaks that of the page, which it writes as its own locale.
Object.defineProperty(navigator, "language", {
  get: () => (document.documentElement.lang.startsWith("zh") ? "zh-CN" : "en"),
});
