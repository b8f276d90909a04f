"""Other programs: files of ARPA, the text form of n-gram models (KenLM, SRILM), and estimators of scikit-learn."""
