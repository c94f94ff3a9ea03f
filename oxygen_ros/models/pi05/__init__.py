"""The pi0.5 family: SigLIP, Gemma, flow-matching action experts."""
