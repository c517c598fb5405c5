"""Best: the fastest, soonest, cheapest or least divided strategy or layout of each place."""
