"""Bodies: JSON to values and back, and the document that describes them."""
