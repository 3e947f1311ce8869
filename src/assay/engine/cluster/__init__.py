"""A plan that many workers carry out together: shards, limits that they share, what they tell about themselves."""
