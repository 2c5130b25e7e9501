"""Publishing: segments and their schemas become visible together, or not at all."""
