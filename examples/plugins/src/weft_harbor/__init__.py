"""An example of every kind of plugin: a channel, a provider, a vendor, an embedder, a source and tools."""
