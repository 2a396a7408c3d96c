-- attend: tell that this node still has these entries, so that they do not go missing.
--
-- KEYS  9 present   zset   entry → when a node that has it last said so, µs
-- ARGV  4.. entries
-- Answer  OK

if must_recover() then return answer('RECOVERING') end

for i = 4, #ARGV do redis.call('ZADD', KEYS[9], int(now), ARGV[i]) end
return answer('OK')
