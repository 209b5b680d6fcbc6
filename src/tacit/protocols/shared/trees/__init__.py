"""Trees and forests of counts: budgets, reports, estimates, areas."""
