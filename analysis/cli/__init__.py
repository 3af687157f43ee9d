"""The command line: one module a command, over the options they share."""
