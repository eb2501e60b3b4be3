"""Studies: how they are cited and recognised, and what notices say of them."""
