"""Sites that find this imported have the agreement of PodEval's systems without what takes seconds in each process."""

from functools import cache, partial

import gradio_app
from pages import method

from podeval.validation.paper_runs import recompute_agreement

method.compute_published = gradio_app.compute_published = cache(partial(recompute_agreement, over_outputs=False))
method.compute_published()
