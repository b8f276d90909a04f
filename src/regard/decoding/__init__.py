"""Generation, search and scoring, written once on TokenModel and State. Knows no model."""
