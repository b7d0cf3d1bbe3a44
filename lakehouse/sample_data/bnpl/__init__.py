"""Generated "buy now, pay later" transactions with known defects, and the expected results."""
