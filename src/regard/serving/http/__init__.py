"""The process that clients talk to: HTTP in and out. It knows no model and never imports torch."""
