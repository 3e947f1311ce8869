"""Dollars as text."""


def cost_text(cost: float, unpriced: int) -> str:
    """An amount, and whether something without a known price is missing from it; never 0 for what is unknown."""
    if unpriced and not cost:
        return "unknown"
    if not cost:
        return "$0"
    text = f"${cost:,.2f}" if cost >= 1 else f"${cost:.4f}" if cost >= 0.01 else f"${cost:.3g}"
    return f"{text} + unknown" if unpriced else text
