"""Prompts: what turns an item into messages. One short file each; no prompt knows which model it is for."""
