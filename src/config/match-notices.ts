/** Notices about mappings that match other requests than they seem to: removed headers, and paths of other hosts. */
import type { ConfigurationError } from './errors.ts';
import { isDisguise } from './fields/disguises.ts';
import type { Configuration } from './load.ts';
import { quote } from './quote.ts';
import { fullName, identityHeadersOf } from './records/conflicts.ts';
import type { Mapping } from './records/mapping.ts';
import type { GatewayRecord } from './records/record.ts';

/** `hasTrustedProxies`: whether some headers are kept because a trusted proxy sets them. */
export function matchNotices(configuration: Configuration, hasTrustedProxies: boolean): readonly ConfigurationError[] {
  const { mappings, authServices } = configuration;
  const kept = new Set(mappings.flatMap(({ keepRequestHeaders }) => keepRequestHeaders));
  const isRemoved = (name: string, keeps: (name: string) => boolean) =>
    isDisguise(name, hasTrustedProxies) && !keeps(name);
  const reads = mappings.flatMap((mapping) =>
    namesRead(mapping)
      .filter((name) => isRemoved(name, (one) => mapping.keepRequestHeaders.includes(one)))
      .map((name) => removedNotice(mapping, name)),
  );
  const sent = authServices.flatMap((record) =>
    record.allowedRequestHeaders
      .filter((name) => isRemoved(name, (one) => kept.has(one)))
      .map((name) => removedNotice(record, name)),
  );
  const identity = identityHeadersOf(configuration);
  const sticky = mappings.flatMap((mapping) => stickyNotice(mapping, identity));
  return [
    ...reads,
    ...sent,
    ...sticky,
    ...mappings.flatMap(starNotice),
    ...mappings.flatMap(packageNotice),
    ...takenPathNotices(mappings),
  ];
}

function namesRead({ headers, labels, sticky }: Mapping): readonly string[] {
  const groups = Object.values(labels).flat();
  const read = groups.flatMap((group) =>
    group.labels.flatMap((label) => (label.kind === 'header' ? label.header : [])),
  );
  const ofClient = sticky?.kind === 'header' ? [sticky.name] : [];
  return [...new Set([...headers.map(({ name }) => name), ...read, ...ofClient])];
}

/** A mapping is chosen before its auth service sets such a header, so no request has it. */
function stickyNotice(mapping: Mapping, identity: ReturnType<typeof identityHeadersOf>): readonly ConfigurationError[] {
  const { sticky } = mapping;
  if (sticky?.kind !== 'header' || !identity.has(sticky.name)) return [];
  const message = `sticky reads the header ${quote(sticky.name)}, which is not known when the mapping is chosen`;
  return [noticeOf(mapping, message, 'Use a cookie, or a header that clients send, such as Authorization.')];
}

/** Many other gateways read a star at the end of a path as any text. */
function starNotice(mapping: Mapping): readonly ConfigurationError[] {
  const { prefix, prefixMatch } = mapping;
  if (prefixMatch === 'regex' || !prefix.endsWith('*')) return [];
  const remedy =
    prefixMatch === 'segments'
      ? `Write prefix: ${prefix.replace(/\/?\**$/, '') || '/'}, which matches everything below it, or set prefix_regex: true.`
      : 'Remove prefix_exact and the star, or set prefix_regex: true.';
  return [noticeOf(mapping, `matches a literal "*" at the end of ${quote(prefix)}, not any text`, remedy)];
}

/** The path of a call is `/package.Service/Method`, and a prefix matches whole segments. */
function packageNotice(mapping: Mapping): readonly ConfigurationError[] {
  const { grpc, prefix, prefixMatch } = mapping;
  if (!grpc || prefixMatch === 'regex' || !prefix.endsWith('.')) return [];
  const all = `/${prefix.slice(1).replaceAll('.', '\\.')}[^/]+/.*`;
  const remedy = `Write the whole name of a service, such as ${prefix}Service, or prefix: ${all} with prefix_regex: true.`;
  return [
    noticeOf(mapping, `matches no gRPC call, because ${quote(prefix)} is not the whole name of a service`, remedy),
  ];
}

function removedNotice(record: GatewayRecord, name: string): ConfigurationError {
  const field = record.kind === 'Mapping' ? 'keep_request_headers' : 'keep_request_headers of a Mapping';
  return noticeOf(
    record,
    `reads the header ${quote(name)}, which is removed because a client could disguise itself with it`,
    `List it in ${field} if clients may send it, or set TRUSTED_PROXIES if your own proxy sets it.`,
  );
}

/**
 * A longer prefix without a host comes before the host of another mapping, as in Envoy: it takes the paths below it on
 * that host too. With another precedence, the order is deliberate.
 */
function takenPathNotices(mappings: readonly Mapping[]): readonly ConfigurationError[] {
  const ofHosts = new Map<string, Mapping>();
  const keyOf = (prefix: string, precedence: number) => `${precedence} ${prefix}`;
  for (const mapping of mappings) {
    const { host, prefix, prefixMatch, precedence, shadow, gatewayRoute } = mapping;
    const key = keyOf(prefix, precedence);
    // Of routes of the Gateway API, those with a host come first.
    const mayLose = host !== undefined && prefixMatch === 'segments' && !shadow && gatewayRoute === undefined;
    if (mayLose && !ofHosts.has(key)) ofHosts.set(key, mapping);
  }
  if (ofHosts.size === 0) return [];
  return mappings.flatMap((mapping) => {
    const { host, prefix, prefixMatch, precedence, shadow } = mapping;
    if (host !== undefined || prefixMatch === 'regex' || shadow) return [];
    const above = prefixesAbove(prefix).map((one) => ofHosts.get(keyOf(one, precedence)));
    const taken = above.find((one) => one !== undefined);
    return taken === undefined ? [] : [takenNotice(mapping, taken)];
  });
}

/** Returns `/a` and `/` for `/a/b`. */
function prefixesAbove(prefix: string): readonly string[] {
  if (prefix === '/') return [];
  const segments = prefix.split('/');
  return segments.slice(1).map((_, index) => segments.slice(0, -1 - index).join('/') || '/');
}

function takenNotice(mapping: Mapping, taken: Mapping): ConfigurationError {
  return noticeOf(
    mapping,
    `takes the paths below ${quote(mapping.prefix)} on the host of Mapping ${taken.name} too, because its prefix is longer and it has no host`,
    'Set a host here, or a higher precedence there. Ignore this if it is for every host.',
  );
}

function noticeOf(record: GatewayRecord, message: string, remedy: string): ConfigurationError {
  return { source: record.source, record: fullName(record), message, remedy };
}
