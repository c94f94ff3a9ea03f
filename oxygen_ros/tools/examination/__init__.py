"""What the doctor looks at, one module per subject; each gives a section of findings."""
