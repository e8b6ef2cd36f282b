"""Try NISQA-TTS on one file: `pip install podeval[reference] gradio`, then `python app.py`."""

from podeval.measuring.demo_page import page

demo = page("nisqa_tts")

if __name__ == "__main__":
    demo.launch()
