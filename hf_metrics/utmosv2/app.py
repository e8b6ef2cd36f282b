"""Try UTMOSv2 on one file: `pip install podeval[reference] gradio`, then `python app.py`."""

from podeval.metrics.demo_page import page

demo = page("utmosv2")

if __name__ == "__main__":
    demo.launch()
