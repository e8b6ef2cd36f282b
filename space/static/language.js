// Gradio speaks the language of the browser; here it speaks that of the page.
Object.defineProperty(navigator, "language", { get: () => ({ zh: "zh-CN" })[document.documentElement.lang] ?? "en" });
