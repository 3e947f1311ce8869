"""The tools that the agent may call. They are never carried out: the call itself is what is evaluated."""


def click_tool(x: float, y: float) -> str:
    """Click at a point of the screenshot, in pixels from its upper left corner."""
    return f"clicked at {x}, {y}"


def type_tool(text: str) -> str:
    """Type a text into the field that has the focus."""
    return f"typed {text}"


def scroll_tool(direction: str, amount: float = 100) -> str:
    """Scroll up, down, left or right by an amount of pixels."""
    return f"scrolled {direction} by {amount}"
