"""Pure text functions that at least two other rooms share. What only one of them needs is not here."""
