"""From files to batches: source, tokenizer, corpus, order, batch; and the worlds that need no files."""
