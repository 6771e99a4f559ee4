"""What all procedures share.

Cells and filters, formulas, choices of noise, previews, reading results again.
"""
