"""The doors: the shell `strata` and the jobs for spark-submit, thin, with the same words."""
