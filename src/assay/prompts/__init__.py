"""Prompts: what turns an item into messages. One short file each."""
