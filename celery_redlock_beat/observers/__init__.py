"""Those who are told what became of each tick; none of them reaches back into the line."""
