"""The tables and figures that the papers print, measured again."""
