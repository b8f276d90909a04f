"""Looking inside: readings and traces of a run, looks that make views of them, worked examples, and renderers."""
