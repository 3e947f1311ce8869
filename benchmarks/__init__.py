"""Ratios against bare loops, measured in the same run: the machine is shared and noisy, absolute times mean little."""
