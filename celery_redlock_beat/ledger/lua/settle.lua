-- settle: close open ticks with their outcomes.
--
-- ARGV  4 how long a settled grant is kept, µs
--       5.. per tick: entry, tick, fence, outcome, n, then n times: reason, number passed over
-- Answer  OK, then per tick
--   DONE     closed and counted; a run no more if it was skipped at the first attempt: at another,
--            the one before may have sent it
--   ALREADY  this very fence settled it before
--   STALE    another grant is in force, or nobody remembers: nothing was changed

local refused = refusal() or cannot_close()
if refused then return refused end

local function take_back_run(entry)
  local record = read_record(entry)
  if record and not record.unreadable and record.runs > 0 then
    record.runs = record.runs - 1
    write_record(entry, record)
  end
end

local keep = tonumber(ARGV[4])
local closings = {}
local i = 5
while i <= #ARGV do
  local entry, member, fence, outcome = ARGV[i], ARGV[i + 1] .. ':' .. ARGV[i], ARGV[i + 2], ARGV[i + 3]
  local last = i + 4 + 2 * tonumber(ARGV[i + 4])
  local passed = {}
  for k = i + 5, last do passed[#passed + 1] = ARGV[k] end
  local closing, grant = may_close(member, tonumber(fence))
  if closing == 'DONE' then
    count(outcome, passed)
    close(member, tonumber(fence), outcome, keep)
    if grant.attempt == 1 and string.sub(outcome, 1, 8) == 'skipped:' then take_back_run(entry) end
  end
  closings[#closings + 1] = closing
  i = last + 1
end
return answer('OK', closings)
