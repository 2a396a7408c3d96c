"""An app of the project: it has tasks, and no models of its own."""
