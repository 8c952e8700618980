"""Ottla's operator: observe → decide (pure) → act by server-side apply → report."""
