-- release: give grants back. The ticks stay open, without an owner, until the back-off ends.
--
-- ARGV  5 back-off, µs   6 UNTRIED | UNREACHABLE | FAILED   7.. per tick: entry, tick, fence
-- Answer  OK, then how many were released
--
-- UNTRIED      the node leaves: no attempt was made
-- UNREACHABLE  the broker is away: no attempt was made, and a newer tick may win
-- FAILED       the attempt counts, and a newer tick may win

local refused = refusal()
if refused then return refused end

local back_off, why = tonumber(ARGV[5]), ARGV[6]
local released = 0
for i = 7, #ARGV, 3 do
  local member = ARGV[i + 1] .. ':' .. ARGV[i]
  local grant = read_grant(member)
  -- Whoever lost the reply asks again: what has no owner was given back already.
  if grant and grant.open and grant.owner ~= '-' and grant.fence == tonumber(ARGV[i + 2]) then
    grant.owner = '-'
    if why ~= 'FAILED' then grant.attempt = grant.attempt - 1 end
    if why ~= 'UNTRIED' then grant.waited = '1' end
    write_grant(member, grant)
    redis.call('ZADD', open, int(now + back_off), member)
    released = released + 1
  end
end
return answer('OK', int(released))
