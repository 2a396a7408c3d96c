-- remainder: what of an entry's ticks is due and neither sent nor skipped at an instant, as the
-- caller counted it, since only that knows the timetable. Shared by the verbs that end it.
--
-- In ARGV: mark ("" for no remainder), upto, n, n times: reason, number; m, m times: tick, fence,
-- n, n times: reason, number
--
-- It holds if the mark is still that, and each of those ticks is open under that fence. Then what
-- lies up to upto is counted, the mark rises to it, and those ticks are closed; otherwise the caller has
-- to look and count again.

local function read_counts(i)
  local counts, last = {}, i + 2 * tonumber(ARGV[i])
  for k = i + 1, last do counts[#counts + 1] = ARGV[k] end
  return counts, last + 1
end

local function read_remainder(i)
  if ARGV[i] == '' then return nil, i + 1 end
  local remainder = {mark = tonumber(ARGV[i]), upto = tonumber(ARGV[i + 1]), closing = {}}
  remainder.passed, i = read_counts(i + 2)
  local number = tonumber(ARGV[i])
  i = i + 1
  for _ = 1, number do
    local each = {tick = ARGV[i], fence = tonumber(ARGV[i + 1])}
    each.passed, i = read_counts(i + 2)
    table.insert(remainder.closing, each)
  end
  return remainder, i
end

local function holds(entry, record, remainder)
  if not record or record.unreadable or record.mark ~= remainder.mark then return false end
  for _, each in ipairs(remainder.closing) do
    local grant = grant_of(each.tick .. ':' .. entry, tonumber(each.tick))
    if not (grant and grant.open and grant.fence == each.fence) then return false end
  end
  return true
end

-- Close its ticks and count the rest; the record is the caller's to write. The new fence takes the
-- right from whoever holds a grant. A tick is a run no more if no attempt was made: on other brokers,
-- one that was may have sent it.
local function finish(entry, record, remainder, outcome, keep)
  for _, each in ipairs(remainder.closing) do
    local member = each.tick .. ':' .. entry
    local grant = grant_of(member, tonumber(each.tick))
    count(outcome, each.passed)
    close(member, next_fence(), outcome, keep,
      {attempt = grant.attempt, previous = grant.previous, passed = each.passed})
    if grant.attempt == 0 and record.runs > 0 then record.runs = record.runs - 1 end
  end
  for i = 1, #remainder.passed, 2 do
    count_one('skipped:' .. remainder.passed[i], remainder.passed[i + 1])
  end
  record.mark = math.max(record.mark, remainder.upto)
end
