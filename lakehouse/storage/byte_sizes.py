"""Human-readable file sizes."""


def size_text(size_bytes: float) -> str:
    """Format a size in the largest unit with a number of at least 1: `812 B`, `1.4 MiB`."""
    amount = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
