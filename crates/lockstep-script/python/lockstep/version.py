"""The version of this package: that of the program which it belongs to."""

VERSION = "0.1.0"
