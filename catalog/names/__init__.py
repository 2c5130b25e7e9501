"""Named schemas: names with numbered versions, and the rules by which one follows another."""
