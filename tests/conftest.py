"""Lets every test import `support`."""
