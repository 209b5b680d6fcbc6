"""Protocols as their papers give them: a module or package for each paper's form."""
