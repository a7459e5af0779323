"""Operations, one module per verb. Each operation returns a report and prints nothing."""
