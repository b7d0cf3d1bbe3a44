"""Generated files as a reader sees them: text, line by line."""

import csv
import gzip
import io
from datetime import date
from pathlib import Path

import pandas as pd

START = date(2026, 1, 5)


def sample_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("bnpl_*.csv*"))


def delivered(folder: Path) -> pd.DataFrame:
    frames = [pd.DataFrame(records(path)) for path in sorted(folder.glob("bnpl_*.csv*"))]
    return pd.concat(frames, ignore_index=True).fillna("")


def records(path: Path) -> list[dict[str, object]]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return [
        {**record, "file": path.name, "row": row}
        for row, record in enumerate(csv.DictReader(io.StringIO(text)), 1)
    ]
