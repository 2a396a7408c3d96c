"""What earlier schedulers left behind: read, and for a way back written; it sends nothing.

shelve_file  the ``celerybeat-schedule`` of stock beat
redbeat      RedBeat's settings, records and lock
"""
