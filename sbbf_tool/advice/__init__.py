"""Which columns deserve a filter, from what a file and its queries show."""
