"""Files of other programs: models of Hugging Face, and ARPA, the text form of n-gram models (KenLM, SRILM)."""
