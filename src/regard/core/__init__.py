"""What a sequence model is. No architecture lives here."""
