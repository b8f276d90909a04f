"""Other programs: models of Hugging Face and GGUF, n-grams as ARPA (KenLM, SRILM), and estimators of scikit-learn."""
