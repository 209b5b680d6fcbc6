"""What a program that goes on running tells who operates it: health, metrics and logs.

No metric and no line of a log holds a count of records, a label, a score or a secret.
"""
