"""Try Information density on one file: `pip install podeval gradio`, then `python app.py`."""

from podeval.measuring.demo_page import page

demo = page("info_dens")

if __name__ == "__main__":
    demo.launch()
