"""What other workers know: who holds what, questions passed on, answers gathered."""
