"""The loopback server's module beside these tests can be imported by its name."""
