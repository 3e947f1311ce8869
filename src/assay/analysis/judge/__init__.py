"""How far a judge can be believed: people's labels, agreement, bias, corrected rates. Values only."""
