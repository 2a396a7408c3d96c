-- seed: let entries begin where another scheduler stopped, before nodes do it, or after it sent again.
--
-- KEYS  13 present   zset   entry → when a node that has it last said so, µs
--       14 beats
-- ARGV  5 1: tell only what would be done
--       6.. per entry: entry, fingerprint, the revision under which it is stored ("" for none), what
--       to note of it, takes_phase and its seed, as in register
-- Answer  OK, then {answer, record} per entry, the record as in register
--   DONE     it begins there, or did so already
--   CLAIMED  it is known and stays as it is: a tick of it was claimed, or a node lives that has
--            begun to count it, or its record cannot be read
--   CHANGED  it is stored under another revision: nothing was done

local present = KEYS[13]
local refused = refusal_of_operator() or foreign(present, 'zset') or foreign(nodes, 'zset')
if refused then return refused end

local is_dry, beats = ARGV[5] == '1', KEYS[14]

local function seed(entry, fingerprint, revision, detail, _, at, phase, again)
  if revision ~= '' and not is_stored_as(entry, tonumber(revision)) then return {'CHANGED', ''} end
  local record = read_record(entry)
  local from = math.min(now, tonumber(at))
  local is_done = record and record.since == from
  if not is_done and is_dry then
    is_done = way_to_seed(entry, record, from, again, beats)
  elseif not is_done and begin_at_seed(entry, record, fingerprint, at, phase, again, beats) then
    is_done = true
    redis.call('ZADD', present, int(now), entry)
    note_deed(entry, 'seeded', detail)
  end
  local known = not (record and record.unreadable) and redis.call('HGET', marks, 'e:' .. entry)
  return {is_done and 'DONE' or 'CLAIMED', known or ''}
end

local answers = {}
for i = 6, #ARGV, 8 do answers[#answers + 1] = seed(unpack(ARGV, i, i + 7)) end
return answer('OK', answers)
