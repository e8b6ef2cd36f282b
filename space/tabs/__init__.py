"""The tabs of the Gradio app at `/try`, one file each."""
