"""What requests are answered from: judges, collections, bases, services."""
