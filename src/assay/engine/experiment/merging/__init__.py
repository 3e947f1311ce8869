"""Several folders of one plan become one folder. Nothing is computed here but what rows agree on."""
