"""Tokenizers: text to whole numbers and back. Each kind is a file; one `tokenizer.json` holds any of them."""

from regard.data.tokenizer.contract import Streamer, Tokenizer, streamer
from regard.data.tokenizer.file import KINDS, as_file, from_dict, load, save, train_tokenizer

__all__ = ["KINDS", "Streamer", "Tokenizer", "as_file", "from_dict", "load", "save", "streamer", "train_tokenizer"]
