"""The report of a replay: figures as JSON, words as Markdown, pictures. docs/replay.md has the schema."""
