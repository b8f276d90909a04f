"""Where the trainings of studies are made: in this process, in processes beside it, or on a Ray cluster."""
