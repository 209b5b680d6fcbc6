"""The papers' own forms, each as its authors published it."""
