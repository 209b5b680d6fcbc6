"""Golden messages of every format: ``python -m tests.vectors`` writes the files of this folder.

A file holds valid messages with their fields, from which another implementation can be written and
tested, and invalid ones, each with a part of the error. A change of a file is a change of its
format, which needs another version in the header.
"""
