"""Judge real runs: real nodes, faults, and a checker that believes only the messages that came.

``celery redlock verify`` and the package's own tests run the same rig. Its parts: the checker
(``arrivals``, ``checker``, ``books``, ``account``), which asks none of the product's timetables;
the ``collector``, which reads the messages; and the nodes with their faults.
"""
