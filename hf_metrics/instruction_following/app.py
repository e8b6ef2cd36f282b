"""Try Instruction following on one file: `pip install podeval gradio`, then `python app.py`."""

from podeval.measuring.demo_page import page

page("instruction_following").launch()
