-- skip: have ticks skipped when they are claimed.
--
-- ARGV  5.. per tick: entry, tick, what to note of it
-- Answer  OK, then per tick
--   DONE     noted: whoever claims it settles it as skipped by an operator
--   OPEN     it is being sent
--   SETTLED  it was sent or skipped
--   MISSING  the ledger has no such entry

local refused = refusal_of_operator()
if refused then return refused end

-- What is open is not settled: who takes it over must skip it, too.
local function others_ahead(entry, mark, asked)
  local ahead = {}
  for tick in string.gmatch(redis.call('HGET', marks, 's:' .. entry) or '', '%d+') do
    local is_ahead = tonumber(tick) > mark or redis.call('ZSCORE', open, tick .. ':' .. entry)
    if is_ahead and tick ~= asked then ahead[#ahead + 1] = tick end
  end
  return ahead
end

local function skip(entry, tick, detail)
  local record = read_record(entry)
  if not record or record.unreadable then return 'MISSING' end
  if redis.call('ZSCORE', open, tick .. ':' .. entry) then return 'OPEN' end
  if tonumber(tick) <= record.mark then return 'SETTLED' end
  local ahead = others_ahead(entry, record.mark, tick)
  ahead[#ahead + 1] = tick
  redis.call('HSET', marks, 's:' .. entry, ' ' .. table.concat(ahead, ' ') .. ' ')
  note_deed(entry, 'to_be_skipped', detail, {mark = record.mark, upto = tonumber(tick), passed = {}})
  return 'DONE'
end

local answers = {}
for i = 5, #ARGV, 3 do answers[#answers + 1] = skip(unpack(ARGV, i, i + 2)) end
return answer('OK', answers)
