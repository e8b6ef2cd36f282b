"""Try Dialogue naturalness on one file: `pip install podeval[embedded] gradio`, then `python app.py`."""

from podeval.measuring.demo_page import page

demo = page("dialogue_naturalness")

if __name__ == "__main__":
    demo.launch()
