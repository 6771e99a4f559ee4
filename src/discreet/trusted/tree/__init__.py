"""Budget trees: data set, studies and seats, each a box; one transaction debits a whole path."""
