-- seed: let entries begin where another scheduler stopped, before nodes do it, or after it sent again.
--
-- KEYS  13 present   zset   entry → when a node that has it last said so, µs
--       14 beats
-- ARGV  5.. per entry: entry, fingerprint, the revision under which it is stored ("" for none), what
--       to note of it, takes_phase and its seed, as in register
-- Answer  OK, then {answer, record} per entry, the record as in register
--   DONE     it begins there, or did so already
--   CLAIMED  it is known and stays as it is: a tick of it was claimed, or a node lives that has
--            begun to count it, or its record cannot be read
--   CHANGED  it is stored under another revision: nothing was done

local present = KEYS[13]
local refused = refusal_of_operator() or foreign(present, 'zset') or foreign(nodes, 'zset')
if refused then return refused end

local function seed(entry, fingerprint, revision, detail, _, at, phase, again)
  if revision ~= '' and not is_stored_as(entry, tonumber(revision)) then return {'CHANGED', ''} end
  local record = read_record(entry)
  local is_there = record and record.since == math.min(now, tonumber(at))
  local is_done = is_there or begin_at_seed(entry, record, fingerprint, at, phase, again, KEYS[14])
  if is_done and not is_there then
    redis.call('ZADD', present, int(now), entry)
    note_deed(entry, 'seeded', detail)
  end
  local is_unreadable = record and record.unreadable
  return {is_done and 'DONE' or 'CLAIMED', is_unreadable and '' or redis.call('HGET', marks, 'e:' .. entry)}
end

local answers = {}
for i = 5, #ARGV, 8 do answers[#answers + 1] = seed(unpack(ARGV, i, i + 7)) end
return answer('OK', answers)
