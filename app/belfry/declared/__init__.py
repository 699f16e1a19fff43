"""What files of YAML declare, and how it differs from what is there."""
