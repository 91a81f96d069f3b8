-- Append one entry, or say why not. Everything here happens or nothing does.
-- KEYS: 1 stream, 2 head, 3 the subject's list, 4 open set, 5 deadlines, 6.. index lists
-- ARGV: 1 expected head seq, 2 expected head hash, 3 expected version, 4 entry, 5 its hash, 6 subject,
--       7 "open", "ended" or "" (no change), 8 deadline or "", 9 writer's nonce
local length = redis.call('LLEN', KEYS[3])
if length ~= tonumber(ARGV[3]) then
  return {'moved', tostring(length)}
end
local head = redis.call('HMGET', KEYS[2], 'seq', 'hash')
local seq = head[1] or '0'
local hash = head[2] or string.rep('0', 64)
if seq ~= ARGV[1] or hash ~= ARGV[2] then
  return {'head', seq, hash}
end
local next = string.format('%d', tonumber(seq) + 1)
redis.call('XADD', KEYS[1], next .. '-0', 'entry', ARGV[4], 'writer', ARGV[9])
redis.call('HSET', KEYS[2], 'seq', next, 'hash', ARGV[5])
redis.call('RPUSH', KEYS[3], next)
for i = 6, #KEYS do
  redis.call('RPUSH', KEYS[i], next)
end
if ARGV[7] == 'open' then
  redis.call('SADD', KEYS[4], ARGV[6])
elseif ARGV[7] == 'ended' then
  redis.call('SREM', KEYS[4], ARGV[6])
end
if ARGV[8] ~= '' then
  redis.call('ZADD', KEYS[5], ARGV[8], ARGV[6])
elseif ARGV[7] ~= '' then
  redis.call('ZREM', KEYS[5], ARGV[6])
end
return {'ok', next}
