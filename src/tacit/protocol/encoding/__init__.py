"""Messages as bytes: fields, queries, values, and the widths of summed numbers."""
