"""Try Grounding in sources on one file: `pip install podeval gradio`, then `python app.py`."""

from podeval.measuring.demo_page import page

page("script_grounding").launch()
