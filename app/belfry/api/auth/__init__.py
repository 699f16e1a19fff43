"""Who asks: keys, tokens, roles, and how often somebody may ask."""
