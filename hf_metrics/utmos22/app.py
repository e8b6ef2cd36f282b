"""Try UTMOS22 on one file: `pip install podeval[reference] gradio`, then `python app.py`."""

from podeval.measuring.demo_page import page

page("utmos22").launch()
