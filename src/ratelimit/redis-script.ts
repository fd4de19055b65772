/** What Redis does for a decision: every counter is read, all hits are checked, then they are counted together. */
import { createHash } from 'node:crypto';
import type { Hit } from './counters.ts';
import type { SharedCount } from './over-memory.ts';

/** A decision, as the script takes it. */
export interface Question {
  /** A counter for each hit. */
  readonly keys: readonly string[];
  readonly hits: readonly Hit[];
  readonly countDenied: boolean;
}

/** Behind the script in EVALSHA and EVAL; several decisions are made one after the other. `timeUs`: since the epoch, or undefined for the time of Redis. */
export function argumentsOf(questions: readonly Question[], timeUs: number | undefined): string[] {
  const keys = questions.flatMap((question) => question.keys);
  return [String(keys.length), ...keys, String(timeUs ?? -1), JSON.stringify(questions.map(numbersOf))];
}

function numbersOf({ hits, countDenied }: Question): readonly (string | number)[] {
  const numbers: (string | number)[] = [countDenied ? 1 : 0];
  for (const { algorithm, windowSeconds, limit, burst, hits: taken, shadow } of hits)
    numbers.push(algorithm, windowSeconds, limit, burst, taken, shadow ? 1 : 0);
  return numbers;
}

/** Of a question, behind its `countDenied`. */
const numbersPerQuestionedHit = 6;

/** Numbers in the answer for each hit: whether it is over, what remains, and the milliseconds until the reset. */
const numbersPerHit = 3;

/** What the script answered to each question; undefined where a key does not hold a counter. Throws when it cannot be read. */
export function countsOf(answer: unknown, questions: readonly Question[]): (readonly SharedCount[] | undefined)[] {
  const numbers = questions.reduce((sum, { keys }) => sum + keys.length * numbersPerHit, 0);
  if (!Array.isArray(answer) || answer.length !== numbers || !answer.every(Number.isInteger))
    throw new Error('the answer of Redis cannot be read');
  let at = 0;
  return questions.map(({ keys }) => {
    const isCounted = answer[at] !== notCounted;
    const counts: SharedCount[] = [];
    for (const end = at + keys.length * numbersPerHit; at < end; at += numbersPerHit)
      counts.push({ over: answer[at] === 1, remaining: answer[at + 1], resetMs: answer[at + 2] });
    return isCounted ? counts : undefined;
  });
}

/** In place of whether a hit is over. */
const notCounted = -1;

/**
 * The algorithms are those that `Hit` describes.
 * KEYS: a counter for each hit of all decisions. ARGV: the time in microseconds, or -1 for the server's own; and as JSON an
 * array for each decision: 1 to count what is denied as well, then for each hit its algorithm, window in seconds, limit,
 * burst, hits, and 1 if it is a shadow.
 * Values are texts of whole numbers: `window count`, `window current before` and, of a bucket, its `tat`.
 * A key lives a second longer than it can matter. Lua's numbers are those of JavaScript, so that counters in memory and
 * in Redis agree to the last digit.
 */
export const countScript = `
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local format = string.format
local nowUs = tonumber(ARGV[1])
if nowUs < 0 then
  local time = redis.call('TIME')
  nowUs = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local nowMs = floor(nowUs / 1000)

-- A clock that steps back over a border stays in the window it was in.
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
function fixed.room(state, hit) return hit.limit - state.count end
function fixed.add(state, hit, hits) state.count = state.count + hits end
function fixed.untilRestored(state, hit) return (state.number + 1) * hit.windowMs - nowMs end
fixed.untilFits = fixed.untilRestored
fixed.lifetime = fixed.untilRestored
function fixed.write(state) return format('%.0f %.0f', state.number, state.count) end

local sliding = {}
function sliding.read(text, hit)
  local number, current, before = string.match(text, '^(%d+) (%d+) (%d+)$')
  local last = tonumber(number or -1)
  local state = { number = windowAfter(last, hit.windowMs), current = 0, before = 0 }
  if number and state.number == last then
    state.current, state.before, state.keepsLifetime = tonumber(current), tonumber(before), true
  elseif number and state.number == last + 1 then
    state.before = tonumber(current)
  end
  return state
end
local function restMs(state, hit) return min(hit.windowMs, (state.number + 1) * hit.windowMs - nowMs) end
function sliding.room(state, hit)
  return hit.limit - state.current - ceil(state.before * restMs(state, hit) / hit.windowMs)
end
function sliding.add(state, hit, hits) state.current = state.current + hits end
function sliding.untilRestored(state, hit)
  if state.current > 0 then return restMs(state, hit) + hit.windowMs end
  return state.before > 0 and restMs(state, hit) or 0
end
function sliding.untilFits(state, hit)
  if hit.hits > hit.limit then return sliding.untilRestored(state, hit) end
  local room = hit.limit - hit.hits - state.current
  if room >= 0 then
    return state.before > 0 and restMs(state, hit) - floor(room * hit.windowMs / state.before) or 0
  end
  -- In the next window, where what is current now is before.
  local overlapMs = floor((hit.limit - hit.hits) * hit.windowMs / state.current)
  return restMs(state, hit) + max(0, hit.windowMs - overlapMs)
end
function sliding.lifetime(state, hit) return (state.number + 2) * hit.windowMs - nowMs end
function sliding.write(state) return format('%.0f %.0f %.0f', state.number, state.current, state.before) end

local bucket = {}
local function intervalUs(hit) return ceil(hit.windowMs * 1000 / hit.limit) end
function bucket.read(text) return { tat = tonumber(text) or 0 } end
-- Further ahead was a clock that has been set back since, or a larger bucket: unless that is put right, all are denied
-- until it is there again. Decisions of one call may know buckets of different size, after a reload.
function bucket.hold(state, hit)
  local full = hit.limit > 0 and hit.burst * intervalUs(hit) or 0
  state.corrected = state.corrected or state.tat > nowUs + full
  state.tat = max(nowUs, min(state.tat, nowUs + full))
end
function bucket.room(state, hit)
  if hit.limit == 0 then return 0 end
  return floor((hit.burst * intervalUs(hit) - (state.tat - nowUs)) / intervalUs(hit))
end
function bucket.add(state, hit, hits)
  if hits ~= 0 then state.tat = state.tat + hits * intervalUs(hit) end
end
function bucket.untilRestored(state) return ceil((state.tat - nowUs) / 1000) end
function bucket.untilFits(state, hit)
  if hit.limit == 0 or hit.hits > hit.burst then return bucket.untilRestored(state) end
  return ceil((state.tat + (hit.hits - hit.burst) * intervalUs(hit) - nowUs) / 1000)
end
bucket.lifetime = bucket.untilRestored
function bucket.write(state) return format('%.0f', state.tat) end

local algorithms = { fixed_window = fixed, sliding_window = sliding, token_bucket = bucket }

local tenYearsMs = 315360000000

-- What each key holds, read once and written once for all decisions of the call; false if that is no counter.
local states = {}
local function stateOf(key, algorithm, hit)
  local state = states[key]
  if state == nil then
    local text = redis.pcall('GET', key) or ''
    local isCounter = type(text) == 'string'
    -- Whatever else is wrong is for Redis to say.
    if not isCounter and string.sub(text.err, 1, 9) ~= 'WRONGTYPE' then redis.call('GET', key) end
    state = isCounter and algorithm.read(text, hit)
    if state then state.stored = text end
    states[key] = state
  end
  return state
end

local answer = {}
local function tell(over, remaining, untilResetMs)
  local last = #answer
  answer[last + 1], answer[last + 2], answer[last + 3] = over, remaining, untilResetMs
end

-- The hit at an argument of the decision, counted at once, so that a second hit of the same key sees the first; what was
-- too much is taken back later. Nil for what cannot be counted.
local function take(asked, at, key)
  local algorithm = algorithms[asked[at]]
  local hit = {
    algorithm = algorithm,
    windowMs = asked[at + 1] * 1000,
    limit = asked[at + 2],
    burst = asked[at + 3],
    hits = asked[at + 4],
    taken = asked[at + 4],
    takesWhatItCan = asked[1] == 1 or asked[at + 5] == 1,
    over = false,
  }
  local state = stateOf(key, algorithm, hit)
  if not state then return nil end
  if algorithm.hold then algorithm.hold(state, hit) end
  local room = max(0, algorithm.room(state, hit))
  if hit.hits > room then
    hit.over = true
    hit.taken = hit.takesWhatItCan and room or 0
  end
  hit.state = state
  algorithm.add(state, hit, hit.taken)
  return hit
end

local function takeBack(hit)
  hit.algorithm.add(hit.state, hit, -hit.taken)
  hit.taken = 0
end

local function conclude(hit)
  local state, algorithm = hit.state, hit.algorithm
  if hit.taken > 0 or state.corrected then state.hit = hit end
  local untilReset = hit.over and algorithm.untilFits or algorithm.untilRestored
  tell(hit.over and 1 or 0, max(0, algorithm.room(state, hit)), max(0, min(untilReset(state, hit), tenYearsMs)))
end

-- Says nothing of a decision that has a key without a counter, and counts nothing of it.
local function decide(asked, firstKey)
  local hits = {}
  local count = (#asked - 1) / ${numbersPerQuestionedHit}
  local denied, failed = false, false
  for index = 1, count do
    local at = ${numbersPerQuestionedHit} * (index - 1) + 2
    local hit = take(asked, at, KEYS[firstKey + index - 1])
    failed = failed or not hit
    denied = denied or hit and hit.over and asked[at + 5] == 0
    hits[#hits + 1] = hit
  end
  for _, hit in ipairs(hits) do
    if failed or denied and not hit.takesWhatItCan then takeBack(hit) end
  end
  if failed then
    for _ = 1, count do tell(${notCounted}, ${notCounted}, ${notCounted}) end
  else
    for _, hit in ipairs(hits) do conclude(hit) end
  end
  return firstKey + count
end

local firstKey = 1
for _, asked in ipairs(cjson.decode(ARGV[2])) do firstKey = decide(asked, firstKey) end

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
return answer
`;

/** What Redis calls the script by. */
export function digestOf(script: string): string {
  return createHash('sha1').update(script).digest('hex');
}
