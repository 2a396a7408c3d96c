"""Entries as versioned JSON, and files of them; nothing here reads a disk, a clock or a server.

schedules   a schedule as a document, and back (kinds: what each kind may say; crontabs, spans)
entries     an entry as canonical JSON text, and the fields of an entry out of such a text
arguments   what tasks are called with, by Celery's own convention for JSON
files       many entries in one JSON or YAML text, and those of ``beat_schedule``
json_text   reading JSON with all that it must not be; yaml_text the same data as YAML
"""
