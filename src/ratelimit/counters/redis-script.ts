/** The Lua script that counts hits in Redis, with functions to format its arguments and parse its reply. */
import { createHash } from 'node:crypto';
import { algorithmsLua } from './algorithms.ts';
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
 * Defines how the state of each algorithm is stored. `read` parses the stored text into a state in the window to count
 * in, or makes a new one, and `write` formats it. The texts are integers: `window current` for a fixed window, `window
 * current previous` for a sliding one, and `current` for a token bucket. `lifetimeMs` is the time until the state
 * becomes irrelevant. `correct`, if there is one, must be called before any other function.
 */
const storageScript = `
local format = string.format

local function readWindows(pattern)
  return function(text, hit)
    local number, current, previous = string.match(text, pattern)
    local last = tonumber(number or -1)
    local state = { windowNumber = windowNumberAfter(last, hit.windowMs), current = 0, previous = 0 }
    if number and state.windowNumber == last then
      state.current, state.previous, state.keepsLifetime = tonumber(current), tonumber(previous or 0), true
    elseif number and state.windowNumber == last + 1 then
      state.previous = tonumber(current)
    end
    return state
  end
end

fixedWindow.read = readWindows('^(%d+) (%d+)$')
function fixedWindow.write(state) return format('%.0f %.0f', state.windowNumber, state.current) end
fixedWindow.lifetimeMs = untilEndMs

slidingWindow.read = readWindows('^(%d+) (%d+) (%d+)$')
function slidingWindow.write(state)
  return format('%.0f %.0f %.0f', state.windowNumber, state.current, state.previous)
end
function slidingWindow.lifetimeMs(state, hit) return untilEndMs(state, hit) + hit.windowMs end

function tokenBucket.read(text) return { current = tonumber(text) or 0 } end
function tokenBucket.write(state) return format('%.0f', state.current) end
tokenBucket.lifetimeMs = tokenBucket.untilEmptyMs
-- A later time comes from a clock that has since been set back, or from a larger bucket. Unless the correction is
-- stored, all hits would be over until then. After a reload, the decisions of one call may have buckets of different
-- sizes.
function tokenBucket.correct(state, hit)
  local latest = nowUs + fullUs(hit)
  if state.current > latest then state.current, state.corrected = latest, true end
end

local algorithms = { fixed_window = fixedWindow, sliding_window = slidingWindow, token_bucket = tokenBucket }
`;

/**
 * Decides and counts. `KEYS` has the counter of each hit of all decisions. `ARGV` has the time in microseconds, or -1
 * for the clock of Redis, and a JSON array with an array for each decision: 1 to also count hits of a denied request,
 * else 0; then for each hit its algorithm, window in seconds, limit, burst, hits, 1 for a shadow hit, else 0, and the
 * number of its quota or -1. Keys expire a second after their state
 * becomes irrelevant.
 */
export const countScript = `
local nowUs = tonumber(ARGV[1])
if nowUs < 0 then
  local time = redis.call('TIME')
  nowUs = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local nowMs = math.floor(nowUs / 1000)
${algorithmsLua}
${storageScript}
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
    countsIfDenied = call[1] == 1 or call[at + 5] == 1 or call[at + 4] < 0,
    quota = call[at + 6],
    over = false,
  }
  local state = stateOf(key, algorithm, hit)
  if not state then return nil end
  if algorithm.correct then algorithm.correct(state, hit) end
  local available = algorithm.available(state, hit)
  if hit.needed > available then
    hit.over = true
    local countsAll = call[1] == 1 and algorithm == fixedWindow and hit.limit > 0
    if not countsAll then hit.taken = (hit.countsIfDenied or hit.quota >= 0) and min(hit.taken, available) or 0 end
  end
  hit.state = state
  algorithm.add(state, hit.taken, hit)
  return hit
end

local function undo(hit)
  hit.algorithm.add(hit.state, -hit.taken, hit)
  hit.taken = 0
end

local function finish(hit)
  local state, algorithm = hit.state, hit.algorithm
  -- Giving hits back creates no counter.
  if hit.taken > 0 or state.corrected or (hit.taken < 0 and state.stored ~= '') then state.hit = hit end
  local untilResetMs = hit.over and algorithm.untilFitsMs or algorithm.untilEmptyMs
  report(hit.over and 1 or 0, algorithm.available(state, hit), max(0, min(untilResetMs(state, hit), tenYearsMs)))
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
    -- What is given back has no say in whether all quotas are over.
    if call[at + 4] < 0 then denies = false
    elseif quota < 0 then denied = denied or denies else quotas[quota] = quotas[quota] or denies or false end
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
    local lifetimeMs = min(hit.algorithm.lifetimeMs(state, hit) + 1000, tenYearsMs)
    redis.call('SET', key, text, 'PX', format('%.0f', lifetimeMs))
  end
end
return reply
`;
