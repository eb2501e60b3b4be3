"""What commands share: how options are declared, and how commands speak."""
