"""Access to data: each engine turns a plan into exact integers,
bit for bit the same as every other engine.
"""
