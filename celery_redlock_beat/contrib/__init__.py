"""Other schedulers' interfaces over ours; each imports what it needs, and nothing imports them."""
