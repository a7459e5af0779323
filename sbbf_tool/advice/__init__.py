"""Which columns deserve a filter, as a file and its queries show."""
