-- settle: close open ticks with their outcomes.
--
-- ARGV  5 how long a settled grant is kept, µs
--       6.. per tick: entry, tick, fence, outcome, due_at, detail, n, then n times: reason, number
--       passed over
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

local keep = tonumber(ARGV[5])
local closings = {}
local i = 6
while i <= #ARGV do
  local entry, member, fence, outcome = ARGV[i], ARGV[i + 1] .. ':' .. ARGV[i], ARGV[i + 2], ARGV[i + 3]
  local due_at, detail = tonumber(ARGV[i + 4]), ARGV[i + 5]
  local last = i + 6 + 2 * tonumber(ARGV[i + 6])
  local passed = {}
  for k = i + 7, last do passed[#passed + 1] = ARGV[k] end
  local closing, grant = may_close(member, tonumber(fence))
  if closing == 'DONE' then
    count(outcome, passed)
    close(member, tonumber(fence), outcome, keep,
      {attempt = grant.attempt, previous = grant.previous, due_at = due_at, passed = passed,
       detail = detail})
    if grant.attempt == 1 and string.sub(outcome, 1, 8) == 'skipped:' then take_back_run(entry) end
  end
  closings[#closings + 1] = closing
  i = last + 1
end
return answer('OK', closings)
