-- pause: hold entries back. When it has answered, nothing of them is enqueued any more: claim and
-- enqueue look themselves.
--
-- KEYS  13 gone
-- ARGV  5.. per entry: entry, until when, µs (0: for ever), what to keep of it, as JSON
-- Answer  OK, then the revision per entry
--
-- A pause of a paused entry replaces it. Open ticks stay open.

local gone = KEYS[13]
local refused = refusal_of_operator() or foreign_feed(gone)
if refused then return refused end

local revisions = {}
for i = 5, #ARGV, 3 do
  local entry, ends, details = unpack(ARGV, i, i + 2)
  local revision = next_revision()
  put(gone, 'p', entry, revision, table.concat({int(revision), ends, details}, ' '))
  note_deed(entry, 'paused', details)
  revisions[#revisions + 1] = int(revision)
end
return answer('OK', revisions)
