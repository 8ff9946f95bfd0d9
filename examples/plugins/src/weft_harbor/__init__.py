"""An example of every kind of plugin: a channel, a provider, an embedder, a source and tools."""
