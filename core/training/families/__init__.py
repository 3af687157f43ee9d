"""Problem families: each module has NAME, MAX_SIZE and draw(rng, size)."""
