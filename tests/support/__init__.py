"""What tests of several rooms share: files and tables to make, servers and engines to start, faults
to inject."""
