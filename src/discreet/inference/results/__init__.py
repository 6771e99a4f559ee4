"""What every result is: releases in, words and intervals out."""
