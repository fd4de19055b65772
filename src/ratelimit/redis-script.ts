/** What Redis does for a decision: every counter is read, all hits are checked, then they are counted together. */
import { createHash } from 'node:crypto';
import type { Hit } from './counters/counters.ts';
import type { SharedCount } from './over-memory.ts';
import { algorithmsScript } from './redis-algorithms.ts';

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
    const isCounted = keys.length === 0 || answer[at] !== notCounted;
    const counts: SharedCount[] = [];
    for (const end = at + keys.length * numbersPerHit; at < end; at += numbersPerHit)
      counts.push({ over: answer[at] === 1, remaining: answer[at + 1], resetMs: answer[at + 2] });
    return isCounted ? counts : undefined;
  });
}

/** In place of whether a hit is over. */
const notCounted = -1;

/**
 * KEYS: a counter for each hit of all decisions. ARGV: the time in microseconds, or -1 for the server's own; and as JSON an
 * array for each decision: 1 to count what is denied as well, then for each hit its algorithm, window in seconds, limit,
 * burst, hits, and 1 if it is a shadow.
 * A key lives a second longer than it can matter.
 */
export const countScript = `
${algorithmsScript}
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
