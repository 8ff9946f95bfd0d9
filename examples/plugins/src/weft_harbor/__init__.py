"""An example of every kind of plugin: a channel, a provider, a vendor, an embedder and tools."""
