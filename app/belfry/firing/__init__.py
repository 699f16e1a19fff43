"""What is due now: the scan from the watermark, and the guard that watches the clock."""
