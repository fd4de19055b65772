/** Mappings as a list for people: what each asks of a request, and where it leads. */
import { type HostMatch, type Mapping, type NamedMatch, namesSecret, type Redirect, type TextMatch } from '#config';
import { createTable, type Rule } from '#routing';

/** One line for each mapping, in the order in which they are tried. */
export function listRoutes(mappings: readonly Mapping[]): readonly string[] {
  const { routes } = createTable(mappings);
  const rows = routes.map((mapping) => ({ asked: [mapping.prefix, ...conditionsOf(mapping)].join('  '), mapping }));
  const width = Math.max(...rows.map(({ asked }) => asked.length), 0);
  return rows.map(({ asked, mapping: { service, redirect, name, source } }) => {
    const target = redirect === undefined ? service : redirectTarget(redirect);
    return `${asked.padEnd(width)}  ->  ${target}  (Mapping ${name}, ${source.file}:${source.line})`;
  });
}

/** What a rule asks of a request beside its prefix, and what part of the requests it gets: `POST`, `host api.*`, `20 %`. */
export function conditionsOf(rule: Rule): readonly string[] {
  const { prefixMatch, caseSensitive, method, host, headers, queryParameters, precedence, weight, shadow } = rule;
  return [
    ...(prefixMatch === 'segments' ? [] : [prefixMatch]),
    ...(caseSensitive ? [] : ['in any case']),
    ...(method === undefined ? [] : [textOf('', '', method).trimStart()]),
    ...(host === undefined ? [] : [hostOf(host)]),
    ...headers.map(({ name, match }: NamedMatch) => textOf(name, ': ', match)),
    ...queryParameters.map(({ name, match }: NamedMatch) => textOf(`?${name}`, '=', match)),
    ...(precedence === 0 ? [] : [`precedence ${precedence}`]),
    ...(weight === undefined ? [] : [`${weight} %`]),
    ...(shadow ? ['shadow'] : []),
  ];
}

/** `x-a: 1`, `x-a ~ \d+`, or `x-a` where any value will do. What reads like a key to the mapping is not shown. */
function textOf(name: string, separator: string, match: TextMatch): string {
  if (match.kind === 'present') return name;
  const [between, text] = match.kind === 'regex' ? [' ~ ', match.pattern] : [separator, match.value];
  return name + between + (namesSecret(name) ? '…' : text);
}

function hostOf(host: HostMatch): string {
  if (host.kind === 'regex') return `host ~ ${host.pattern}`;
  if (host.kind === 'suffix') return `host *${host.value}`;
  return `host ${host.value}${host.kind === 'prefix' ? '*' : ''}`;
}

function redirectTarget({ host, status }: Redirect): string {
  return host === undefined ? `redirect (${status})` : `redirect to ${host} (${status})`;
}
