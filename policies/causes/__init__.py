"""Why something happened: statements about readings, their truth, and the one type that states a cause."""
