"""What RedBeat 2.x left behind: its settings, its records, and a way back; it sends nothing."""
