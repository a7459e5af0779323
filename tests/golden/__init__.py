"""A folder for each rule: a file with the defect that the rule is about, as `defects` makes it, and what is reported of it."""
