"""One module a tab of the page: layout and wiring, nothing else."""
