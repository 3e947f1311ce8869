"""What people look at: a value becomes a sheet, a sheet becomes text. Text from models and data is made harmless before
it is shown; nothing is computed here."""
