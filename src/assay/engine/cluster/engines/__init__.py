"""Who starts workers: processes of this machine, Ray, and the files for SLURM and Kubernetes. None of them carries
rows."""
