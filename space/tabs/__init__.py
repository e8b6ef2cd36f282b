"""The tabs of the Gradio app, one file for each."""
