"""Pages, tables and model cards of results, as ``results.saved`` reads them."""
