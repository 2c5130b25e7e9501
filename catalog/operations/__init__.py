"""Changes in many parts, visible at one moment: claims, parts, epochs."""
