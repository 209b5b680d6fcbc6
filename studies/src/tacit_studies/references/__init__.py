"""The papers' methods, written naively from their text, beside which ours are measured."""
