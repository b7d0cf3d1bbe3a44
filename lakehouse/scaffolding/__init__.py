"""New declarations from files and tables that are there: what the files hold, and the text of
the Python files that declare it.

Looking (`inspect_files`), deciding (`plan_feed`) and wording (`…_text`) are apart; only
`write_files` writes.
"""
