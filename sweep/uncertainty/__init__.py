"""How sure an answer is: draws of the uncertain parameters, intervals, and probabilities."""
