"""What people look at: a value of `analysis` or `engine` becomes a sheet, and a sheet becomes text. Nothing is computed
here, and text from models and data is made harmless before it is shown."""
