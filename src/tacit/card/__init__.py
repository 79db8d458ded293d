"""The model card of a run: what a review board reads and signs, in Markdown and HTML."""
