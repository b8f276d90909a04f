"""Tokenizers: text to whole numbers and back. Each kind is a file; one `tokenizer.json` holds any of them."""

from regard.data.tokenizer.contract import Streamer, Tokenizer, streamer
from regard.data.tokenizer.file import KINDS, from_dict, load, save, train_tokenizer

__all__ = ["KINDS", "Streamer", "Tokenizer", "from_dict", "load", "save", "streamer", "train_tokenizer"]
