"""Files of other programs: ARPA, the text form of n-gram models (KenLM, SRILM)."""
