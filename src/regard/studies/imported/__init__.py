"""Studies on models that have read much, with the weights of others: one file each, named as what it is a form of."""
