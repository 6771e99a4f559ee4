"""The documentation site: `python -m tools.site` builds it; `make docs` prepares what that needs.

execution.py   code blocks run, with seeded noise; what they print and draw
markup.py      Markdown that the pages use beside the usual: formulas, hover text
pages.py       a page of docs/ as it goes to mkdocs: outputs, links, evidence, peers
reference.py   a page for every public name, from its docstring
gallery.py     every picture that the library draws
lectures.py    entries of the mathematics: corrections, code and tests
evidence.py    tables of measured figures, from benchmarks/results/*.json
sources.py     pages of the repository's files that others link to
staging.py     all of them together, in a folder that mkdocs reads
checks.py      what must hold of the built pages
reading.py     the built pages in a browser, on a phone and on a desk
"""
