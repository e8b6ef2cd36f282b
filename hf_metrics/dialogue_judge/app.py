"""Try Dialogue judge on one file: `pip install podeval gradio`, then `python app.py`."""

from podeval.measuring.demo_page import page

demo = page("dialogue_judge")

if __name__ == "__main__":
    demo.launch()
