"""Try Information density on one file: `pip install podeval gradio`, then `python app.py`."""

from podeval.measuring.demo_page import page

page("info_dens").launch()
