"""What earlier schedulers left behind: read, and for a way back written; it sends nothing.

predecessor  what a scheduler asks about the one before it
move         what becomes of its entries when they are taken over
seed_file    the first start after stock beat; shelve_file reads its ``celerybeat-schedule``
redbeat      RedBeat's settings, records and lock
"""
