/** The question of `/gateway/v0/explain`, read from its query; every fault is told at once. */
import type { Question } from '#gateway';
import { type Fault, faultsOfRequest, problem } from '#http';
import { queryFault } from './query-fault.ts';

const searchLengthMax = 8192;
const headersMax = 64;

const names = ['method', 'url', 'header', 'user', 'from', 'all'] as const;

/** `search`: with or without its question mark. Empty arguments are as good as none. Throws `bad-argument`. */
export function readQuestion(search: string): Question {
  if (search.length > searchLengthMax)
    throw problem('bad-argument', { errors: [queryFault('', `is longer than ${searchLengthMax} characters`)] });
  const given = [...new URLSearchParams(search)].filter(([, value]) => value.trim() !== '');
  const argument = (name: (typeof names)[number]) => given.find(([one]) => one === name)?.[1];
  const question: Question = {
    method: argument('method') ?? 'GET',
    url: argument('url') ?? '/',
    headers: given.filter(([name]) => name === 'header').map(([, line]) => parseHeader(line)),
    user: argument('user'),
    remoteAddress: argument('from'),
    all: argument('all') === 'true',
  };
  const faults = [...argumentFaults(given), ...faultsOfRequest(question)];
  if (faults.length > 0) throw problem('bad-argument', { errors: faults });
  return question;
}

/** `Name: value`; without a colon the name is what is there, and no header's. */
export function parseHeader(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(':');
  return colon < 0 ? [`${line} `, ''] : [line.slice(0, colon), line.slice(colon + 1).trim()];
}

function argumentFaults(given: readonly (readonly [string, string])[]): readonly Fault[] {
  const known: readonly string[] = names;
  const counts = new Map<string, number>();
  for (const [name] of given) counts.set(name, (counts.get(name) ?? 0) + 1);
  const faults = [...counts].flatMap(([name, count]) => {
    if (!known.includes(name)) return [queryFault(name, `is unknown; there are ${names.join(', ')}`)];
    if (name === 'header')
      return count > headersMax ? [queryFault(name, `is given more than ${headersMax} times`)] : [];
    return count > 1 ? [queryFault(name, 'is given more than once')] : [];
  });
  const all = given.find(([name]) => name === 'all')?.[1] ?? 'false';
  return [
    ...faults,
    ...(counts.has('url') ? [] : [queryFault('url', 'is missing')]),
    ...(all === 'true' || all === 'false' ? [] : [queryFault('all', 'is neither true nor false')]),
  ];
}
