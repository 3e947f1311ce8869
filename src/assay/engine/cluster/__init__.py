"""One experiment on many machines: workers, what they agree on, and the engines that start them."""
