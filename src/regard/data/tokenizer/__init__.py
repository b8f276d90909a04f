"""Tokenizers: text to whole numbers and back. Each kind is a file; one `tokenizer.json` holds any of them."""

from regard.data.tokenizer.file import TOKENIZERS, as_file, from_dict, load, save, train_tokenizer
from regard.data.tokenizer.tokenizer import Streamer, Tokenizer, streamer

__all__ = ["TOKENIZERS", "Streamer", "Tokenizer", "as_file", "from_dict", "load", "save", "streamer", "train_tokenizer"]
