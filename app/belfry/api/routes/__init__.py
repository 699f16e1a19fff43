"""What can be asked: one module for each kind of thing."""
