/** The Lua script that counts hits in Redis, with functions to format its arguments and parse its reply. */
import { createHash } from 'node:crypto';
import type { Hit } from './counters.ts';
import type { SharedResult } from './over-limit-cache.ts';

/** The hits of one decision. A script call carries several decisions. */
export interface ScriptCall {
  /** The counter of each hit. */
  readonly keys: readonly string[];
  readonly hits: readonly Hit[];
  readonly countDenied: boolean;
}

/**
 * Formats the arguments that follow the script in EVALSHA and EVAL. The script makes the decisions one after the other.
 * `timeUs` is in microseconds since the epoch, or undefined to use the clock of Redis.
 */
export function formatArguments(calls: readonly ScriptCall[], timeUs: number | undefined): string[] {
  const keys = calls.flatMap((call) => call.keys);
  return [String(keys.length), ...keys, String(timeUs ?? -1), JSON.stringify(calls.map(numbersOf))];
}

function numbersOf({ hits, countDenied }: ScriptCall): readonly (string | number)[] {
  const numbers: (string | number)[] = [countDenied ? 1 : 0];
  for (const { algorithm, windowSeconds, limit, burst, hits: taken, shadow, quota = -1 } of hits)
    numbers.push(algorithm, windowSeconds, limit, burst, taken, shadow ? 1 : 0, quota);
  return numbers;
}

/** The number of arguments for each hit. Those of a decision follow its `countDenied`. */
const argumentsPerHit = 7;

/** The reply has three numbers for each hit: whether it is over, what remains, and the milliseconds until the reset. */
const numbersPerHit = 3;

/**
 * Parses the results of each decision; undefined for one with a key that holds something other than a counter. Throws
 * for a malformed reply.
 */
export function parseReply(reply: unknown, calls: readonly ScriptCall[]): (readonly SharedResult[] | undefined)[] {
  const numbers = calls.reduce((sum, { keys }) => sum + keys.length * numbersPerHit, 0);
  if (!Array.isArray(reply) || reply.length !== numbers || !reply.every(Number.isInteger))
    throw new Error('the reply of Redis is malformed');
  let at = 0;
  return calls.map(({ keys }) => {
    const isCounted = keys.length === 0 || reply[at] !== notCounted;
    const results: SharedResult[] = [];
    for (const end = at + keys.length * numbersPerHit; at < end; at += numbersPerHit)
      results.push({ over: reply[at] === 1, remaining: reply[at + 1], resetMs: reply[at + 2] });
    return isCounted ? results : undefined;
  });
}

/** Fills the result of a hit whose decision was not counted. */
const notCounted = -1;

/** Returns the SHA-1 digest by which Redis identifies the script. */
export function digestOf(script: string): string {
  return createHash('sha1').update(script).digest('hex');
}

/**
 * Implements the algorithms that `Hit` describes. Lua's numbers are the same doubles as JavaScript's, so counters in
 * memory and in Redis agree to the last digit.
 *
 * `ARGV[1]` is the time in microseconds, or -1 for the clock of Redis. The script defines `nowUs`, `nowMs` and a table
 * `algorithms` by name. `read` parses the stored text of a counter into a state, `''` into a new one, and `write`
 * formats the state. `correct`, if there is one, must be called before `available`. `add` with a negative number undoes
 * an earlier addition. The stored texts are integers: `window count` for a fixed window, `window current previous` for
 * a sliding one, and `tat` for a token bucket.
 */
const algorithmsScript = `
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local format = string.format
local nowUs = tonumber(ARGV[1])
if nowUs < 0 then
  local time = redis.call('TIME')
  nowUs = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local nowMs = floor(nowUs / 1000)

-- If the clock steps back into the previous window, counting stays in the last one.
local function windowAfter(last, windowMs)
  local number = floor(nowMs / windowMs)
  if number == last - 1 then return last end
  return number
end

local fixed = {}
function fixed.read(text, hit)
  local number, count = string.match(text, '^(%d+) (%d+)$')
  local last = tonumber(number or -1)
  local current = windowAfter(last, hit.windowMs)
  local isSame = current == last
  return { number = current, count = isSame and tonumber(count) or 0, keepsLifetime = isSame }
end
function fixed.available(state, hit) return hit.limit - state.count end
function fixed.add(state, hit, hits) state.count = state.count + hits end
function fixed.untilEmpty(state, hit) return (state.number + 1) * hit.windowMs - nowMs end
fixed.untilFits = fixed.untilEmpty
fixed.lifetime = fixed.untilEmpty
function fixed.write(state) return format('%.0f %.0f', state.number, state.count) end

local sliding = {}
function sliding.read(text, hit)
  local number, current, previous = string.match(text, '^(%d+) (%d+) (%d+)$')
  local last = tonumber(number or -1)
  local state = { number = windowAfter(last, hit.windowMs), current = 0, previous = 0 }
  if number and state.number == last then
    state.current, state.previous, state.keepsLifetime = tonumber(current), tonumber(previous), true
  elseif number and state.number == last + 1 then
    state.previous = tonumber(current)
  end
  return state
end
local function restMs(state, hit) return min(hit.windowMs, (state.number + 1) * hit.windowMs - nowMs) end
function sliding.available(state, hit)
  return hit.limit - state.current - ceil(state.previous * restMs(state, hit) / hit.windowMs)
end
function sliding.add(state, hit, hits) state.current = state.current + hits end
function sliding.untilEmpty(state, hit)
  if state.current > 0 then return restMs(state, hit) + hit.windowMs end
  return state.previous > 0 and restMs(state, hit) or 0
end
function sliding.untilFits(state, hit)
  if hit.needed > hit.limit then return sliding.untilEmpty(state, hit) end
  local spare = hit.limit - hit.needed - state.current
  if spare >= 0 then
    return state.previous > 0 and restMs(state, hit) - floor(spare * hit.windowMs / state.previous) or 0
  end
  -- In the next window, where the current hits are the previous ones.
  local overlapMs = floor((hit.limit - hit.needed) * hit.windowMs / state.current)
  return restMs(state, hit) + max(0, hit.windowMs - overlapMs)
end
function sliding.lifetime(state, hit) return (state.number + 2) * hit.windowMs - nowMs end
function sliding.write(state) return format('%.0f %.0f %.0f', state.number, state.current, state.previous) end

local bucket = {}
local function intervalUs(hit) return ceil(hit.windowMs * 1000 / hit.limit) end
function bucket.read(text) return { tat = tonumber(text) or 0 } end
-- A later time comes from a clock that has since been set back, or from a larger bucket. Without the correction, all
-- hits would be over until then. After a reload, the decisions of one call may have buckets of different sizes.
function bucket.correct(state, hit)
  local full = hit.limit > 0 and hit.burst * intervalUs(hit) or 0
  state.corrected = state.corrected or state.tat > nowUs + full
  state.tat = max(nowUs, min(state.tat, nowUs + full))
end
function bucket.available(state, hit)
  if hit.limit == 0 then return 0 end
  return floor((hit.burst * intervalUs(hit) - (state.tat - nowUs)) / intervalUs(hit))
end
function bucket.add(state, hit, hits)
  if hits ~= 0 then state.tat = state.tat + hits * intervalUs(hit) end
end
function bucket.untilEmpty(state) return ceil((state.tat - nowUs) / 1000) end
function bucket.untilFits(state, hit)
  if hit.limit == 0 or hit.needed > hit.burst then return bucket.untilEmpty(state) end
  return ceil((state.tat + (hit.needed - hit.burst) * intervalUs(hit) - nowUs) / 1000)
end
bucket.lifetime = bucket.untilEmpty
function bucket.write(state) return format('%.0f', state.tat) end

local algorithms = { fixed_window = fixed, sliding_window = sliding, token_bucket = bucket }
`;

/**
 * Decides and counts. `KEYS` has the counter of each hit of all decisions. `ARGV` has the time in microseconds, or -1
 * for the clock of Redis, and a JSON array with an array for each decision: 1 to also count hits of a denied request,
 * else 0; then for each hit its algorithm, window in seconds, limit, burst, hits, 1 for a shadow hit, else 0, and the
 * number of its quota or -1. Keys expire a second after their state becomes irrelevant.
 */
export const countScript = `
${algorithmsScript}
local tenYearsMs = 315360000000

-- The state of each key, read once and written once for all decisions of the call. False if the key holds no counter.
local states = {}
local function stateOf(key, algorithm, hit)
  local state = states[key]
  if state == nil then
    local text = redis.pcall('GET', key) or ''
    local isCounter = type(text) == 'string'
    -- Repeat the command for any other error, so that the call fails with the message of Redis.
    if not isCounter and string.sub(text.err, 1, 9) ~= 'WRONGTYPE' then redis.call('GET', key) end
    state = isCounter and algorithm.read(text, hit)
    if state then state.stored = text end
    states[key] = state
  end
  return state
end

local reply = {}
local function report(over, remaining, untilResetMs)
  local last = #reply
  reply[last + 1], reply[last + 2], reply[last + 3] = over, remaining, untilResetMs
end

-- Counts the hit whose arguments begin at an index of the decision. It counts immediately, so that a later hit on the
-- same key sees it; undo reverts it if the request is denied. Returns nil if the key holds something else.
local function take(call, at, key)
  local algorithm = algorithms[call[at]]
  local hit = {
    algorithm = algorithm,
    windowMs = call[at + 1] * 1000,
    limit = call[at + 2],
    burst = call[at + 3],
    hits = call[at + 4],
    needed = call[at + 4] == 0 and min(1, call[at + 2]) or call[at + 4],
    taken = call[at + 4],
    countsIfDenied = call[1] == 1 or call[at + 5] == 1,
    quota = call[at + 6],
    over = false,
  }
  local state = stateOf(key, algorithm, hit)
  if not state then return nil end
  if algorithm.correct then algorithm.correct(state, hit) end
  local available = max(0, algorithm.available(state, hit))
  if hit.needed > available then
    hit.over = true
    hit.taken = (hit.countsIfDenied or hit.quota >= 0) and available or 0
  end
  hit.state = state
  algorithm.add(state, hit, hit.taken)
  return hit
end

local function undo(hit)
  hit.algorithm.add(hit.state, hit, -hit.taken)
  hit.taken = 0
end

local function finish(hit)
  local state, algorithm = hit.state, hit.algorithm
  if hit.taken > 0 or state.corrected then state.hit = hit end
  local untilReset = hit.over and algorithm.untilFits or algorithm.untilEmpty
  report(hit.over and 1 or 0, max(0, algorithm.available(state, hit)), max(0, min(untilReset(state, hit), tenYearsMs)))
end

-- Quotas deny the request if there are any and all of them are over.
local function allOver(quotas)
  local all = next(quotas) ~= nil
  for _, over in pairs(quotas) do all = all and over end
  return all
end

-- If a key holds something other than a counter, the decision counts nothing and has no results. Returns the index of
-- the first key of the next decision.
local function decide(call, firstKey)
  local hits = {}
  local count = (#call - 1) / ${argumentsPerHit}
  local denied, failed, quotas = false, false, {}
  for index = 1, count do
    local at = ${argumentsPerHit} * (index - 1) + 2
    local hit = take(call, at, KEYS[firstKey + index - 1])
    failed = failed or not hit
    local denies = hit and hit.over and call[at + 5] == 0
    local quota = call[at + 6]
    if quota < 0 then denied = denied or denies else quotas[quota] = quotas[quota] or denies or false end
    hits[#hits + 1] = hit
  end
  denied = denied or allOver(quotas)
  for _, hit in ipairs(hits) do
    if failed or denied and not hit.countsIfDenied then undo(hit) end
  end
  if failed then
    for _ = 1, count do report(${notCounted}, ${notCounted}, ${notCounted}) end
  else
    for _, hit in ipairs(hits) do finish(hit) end
  end
  return firstKey + count
end

local firstKey = 1
for _, call in ipairs(cjson.decode(ARGV[2])) do firstKey = decide(call, firstKey) end

for key, state in pairs(states) do
  local hit = state and state.hit
  local text = hit and hit.algorithm.write(state)
  if text and text ~= state.stored and state.keepsLifetime then
    redis.call('SET', key, text, 'KEEPTTL')
  elseif text and text ~= state.stored then
    local lifetimeMs = min(hit.algorithm.lifetime(state, hit) + 1000, tenYearsMs)
    redis.call('SET', key, text, 'PX', format('%.0f', lifetimeMs))
  end
end
return reply
`;
