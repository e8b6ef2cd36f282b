"""Try WSIM on one file: `pip install podeval[embedded] gradio`, then `python app.py`."""

from podeval.measuring.demo_page import page

demo = page("wsim")

if __name__ == "__main__":
    demo.launch()
