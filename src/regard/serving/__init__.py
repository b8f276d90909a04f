"""`regard lab`: a page of this machine on which runs are looked into. Nothing of it can be reached from elsewhere."""
