"""Try UTMOS22 on one file: `pip install podeval[reference] gradio`, then `python app.py`."""

from podeval.measuring.demo_page import page

demo = page("utmos22")

if __name__ == "__main__":
    demo.launch()
