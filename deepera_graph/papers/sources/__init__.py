"""The world's literature, asked live: services behind one protocol, fused and told apart.

Names are imported when they are first used.
"""
