"""The KV memory: its shape, its accounts and its tensors."""
