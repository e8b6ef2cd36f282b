"""Try DNSMOS on one file: `pip install podeval[embedded] gradio`, then `python app.py`."""

from podeval.measuring.demo_page import page

demo = page("dnsmos")

if __name__ == "__main__":
    demo.launch()
