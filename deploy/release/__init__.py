"""What is published of a release, built from a commit."""
