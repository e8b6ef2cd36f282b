"""Try Human likeness on one file: `pip install podeval[embedded] gradio`, then `python app.py`."""

from podeval.measuring.demo_page import page

page("human_likeness").launch()
