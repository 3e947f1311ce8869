"""What repositories share, and ways through several of them."""
