"""How the board looks: system fonts, Gradio's own light and dark colours, room for numbers on a phone."""

from __future__ import annotations

import gradio as gr

FONT = ["system-ui", "-apple-system", "Segoe UI", "sans-serif"]
MONO = ["ui-monospace", "Consolas", "monospace"]

CSS = """
.gradio-container { min-width: 0 !important; width: 100%; }
.gradio-container h1 { margin-bottom: 0; letter-spacing: -0.02em; }
.gradio-container, .gradio-container * { --body-text-color-subdued: #475569; }
.dark .gradio-container, .dark.gradio-container, .dark .gradio-container * { --body-text-color-subdued: #b6c2d1; }
.quiet, .quiet p, .quiet strong, .quiet em { color: var(--body-text-color-subdued); }
.board [role=gridcell], .board [role=columnheader], .board [role=gridcell] *, .board [role=columnheader] *,
.board .sizing-body * { font-family: var(--font) !important; }
.board [role=gridcell] { font-variant-numeric: tabular-nums; }
.board [role=columnheader] .header-content, .board [role=columnheader] .header {
  white-space: normal !important; text-align: left !important; justify-content: flex-start;
}
.vega-embed { width: 100%; }
.vega-embed svg text { fill: var(--body-text-color); }
.vega-embed svg .role-axis-grid line { stroke: var(--border-color-primary); }
.vega-embed svg .role-axis-domain line, .vega-embed svg .role-axis-tick line {
  stroke: var(--body-text-color-subdued);
}
.dark .vega-embed svg .role-mark, .dark .vega-embed svg .role-legend-symbol { filter: brightness(1.5); }
:focus-visible { outline: 3px solid #0072B2 !important; outline-offset: 2px; }
.dark :focus-visible { outline-color: #56B4E9 !important; }
@media (max-width: 640px) {
  .gradio-container { padding: 8px !important; }
  .gradio-container main { padding: 0 !important; }
}
"""


def theme() -> gr.themes.Base:
    """The theme; its fonts are those of the reader's system, so that no page asks another host for one."""
    return gr.themes.Default(
        primary_hue="blue", neutral_hue="slate", font=list(FONT), font_mono=list(MONO), radius_size="md"
    )
