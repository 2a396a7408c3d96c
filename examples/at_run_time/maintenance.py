"""Hold all digests back while something is done to the database, and let them go on afterwards.

What somebody has paused for another reason stays paused. If this script dies, the pause ends by
itself.
"""

from datetime import timedelta

from proj import app

from celery_redlock_beat import Control

control = Control(app, who="maintenance")

active = [view.name for view in control.entries(tag="digest", state="active")]
if not active:
    raise SystemExit("nothing to hold back")
control.pause(*active, note="the database moves", until=timedelta(minutes=10))
try:
    print("held back:", ", ".join(active))
finally:
    control.resume(*active)
