"""What people look at: tables, plans, progress. Text from models and data is made harmless before it is shown."""
