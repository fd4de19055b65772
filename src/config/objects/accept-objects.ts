/** Accepts or refuses each object of a cluster by itself, so that the mistake of one team stops nobody else. */
import type { AddressRecord } from '../ambassador/addresses.ts';
import type { ConfigurationError, Fault } from '../errors.ts';
import { isRoute } from '../gateway-api/specs.ts';
import { freezeDeep } from '../load.ts';
import { pathBypassNotices } from '../path-bypasses.ts';
import type { AuthService } from '../records/auth-service.ts';
import { findConflicts, recordError, weightOf } from '../records/conflicts.ts';
import { type Mapping, mappingDefaults } from '../records/mapping.ts';
import { groupOf } from '../records/match.ts';
import { type GatewayRecord, type RecordLists, recordLists } from '../records/record.ts';
import type { ServedCertificate } from '../tls/served-certificates.ts';
import { readUpstreamFiles, type UpstreamFile } from '../tls/upstream-files.ts';
import { mapInTurns, nextTurn } from '../turns.ts';
import { createCopies } from './copies.ts';
import type { Guards } from './guards.ts';
import { createNames } from './names.ts';
import { type ClusterObject, nameOfObject, type ObjectVerdict } from './object.ts';
import { hasRecords, type ObjectPart } from './read-object.ts';
import { guardsOf, refusalOf } from './refusals.ts';
import { unreadNotices } from './unread-notices.ts';
import { createVersions, type Entry, type Unusable, type VersionOptions } from './versions.ts';

export interface AcceptanceOptions extends VersionOptions {
  /** The directory to which the names of files in records are relative. */
  readonly directory: string;
  readonly strictPaths: boolean;
  /** Returns a `recordError` for each valid record that this process cannot serve. */
  readonly findUnservable: (lists: RecordLists) => readonly ConfigurationError[];
}

/** The records of a cluster that are in use. */
export interface AcceptedObjects {
  readonly records: RecordsOfCluster;
  /** In the order of the objects. Objects without records have none. */
  readonly verdicts: readonly ObjectVerdict[];
  /** Those of all objects, and those about several. */
  readonly notices: readonly ConfigurationError[];
  /** Those of the listeners of Gateways that are in use. */
  readonly certificates: readonly ServedCertificate[];
}

export interface RecordsOfCluster extends RecordLists {
  readonly addresses: readonly AddressRecord[];
  readonly upstreamFiles: readonly UpstreamFile[];
}

/** What a process uses before it has read all objects: every request gets 503. */
export const nothingRead: AcceptedObjects = freezeDeep({
  records: { ...recordLists([everythingRefused()]), addresses: [], upstreamFiles: [] },
  verdicts: [],
  notices: [],
  certificates: [],
});

function everythingRefused(): Mapping {
  const record = {
    ...mappingDefaults,
    kind: 'Mapping' as const,
    name: 'unread',
    prefix: '/',
    service: '',
  };
  const refusal = 'the objects of the cluster have not been read yet';
  return { ...record, refusal, source: { file: 'the cluster', line: 0 } };
}

export interface ObjectAcceptance {
  /**
   * Takes all objects of the cluster, the oldest first. Must not be called concurrently. `unusable` returns why an object
   * is to be refused although nothing is wrong with it. @default none is
   */
  readonly accept: (objects: readonly ClusterObject[], unusable?: Unusable) => Promise<AcceptedObjects>;
  /** Forgets which versions the last call of `accept` has found valid, because they cannot be used. */
  readonly undo: () => void;
}

type NamespaceOf = (record: GatewayRecord) => string;

/** The objects of records, by their places. */
type Owners = ReadonlyMap<unknown, Entry>;

/** After these rounds, what is wrong between objects is settled without last valid versions. */
const roundsMax = 100;

/**
 * An object is refused as a whole if one of its records is wrong. Its last valid version then stays, as long as this
 * object of the cluster exists and this acceptance does. Without one, it fails closed for what it may guard:
 *
 * - Requests that its Mappings match get 503.
 * - If such a match cannot be read, so do those of the Mappings with `bypass_auth` in its namespace.
 * - Without the AuthService that it may be, so do those of all Mappings that need the default one. One that does not count
 *   closes only those of its namespace. A newer one does not become the default instead of it.
 * - Without the RateLimitService that it may be, so do those of all Mappings with labels for it, if it would reject them
 *   while it cannot count.
 *
 * Of objects in conflict, the older one counts.
 */
export function createObjectAcceptance(options: AcceptanceOptions): ObjectAcceptance {
  const versions = createVersions(options);
  const refusedCopy = createCopies<Mapping>();
  const weightlessCopy = createCopies<Mapping>();
  const withRefusal = (mapping: Mapping, refusal: string) =>
    refusedCopy(mapping, refusal, () => ({ ...mapping, refusal }));
  const withoutWeight = (mapping: Mapping) => weightlessCopy(mapping, '', () => ({ ...mapping, weight: undefined }));
  const names = createNames(options.trusted);
  let files: readonly UpstreamFile[] = [];

  /** The records of these versions, as a whole and by the object that they come from. Leaves out what is `covered`. */
  function assemble(entries: readonly Entry[], covered: ReadonlySet<unknown>) {
    const owners = new Map<unknown, Entry>();
    const refused = entries.filter(({ version }) => version === undefined);
    const guards = guardsOf(
      refused.map(({ part }) => part),
      options.trusted,
    );
    const chosen = entries.map(({ part, version }) => {
      return version?.records ?? part.guards().mappings.filter(({ source }) => !covered.has(source));
    });
    const { authServices, rateLimitServices } = recordLists(chosen.flat());
    const services = { hasDefault: authServices.some(isDefault), hasLimiter: rateLimitServices.length > 0 };
    const known = names.among(chosen.flat());
    const records = entries.flatMap((entry, index) =>
      (chosen[index] ?? []).map((record) => {
        owners.set(record.source, entry);
        const placed = known.resolve(record, entry.part.object.namespace);
        const reason = placed.kind === 'Mapping' && refusalOf(placed, entry.part.object, guards, services);
        return reason ? withRefusal(placed as Mapping, reason) : placed;
      }),
    );
    return { records, owners };
  }

  /**
   * A newer AuthService does not become the default instead of a refused one, so that no other service than meant decides
   * who may pass. One that was the default before stays.
   */
  function findReplacements(records: readonly GatewayRecord[], owners: Owners, entries: readonly Entry[]) {
    const isRefused = ({ part, version }: Entry) =>
      version === undefined && options.trusted.includes(part.object.namespace) && part.guards().hasDefault;
    const first = entries.findIndex(isRefused);
    const newer = new Set(first === -1 ? [] : entries.slice(first));
    const found = recordLists(records).authServices.filter((record) => {
      const owner = owners.get(record.source);
      const before = owner && versions.lastValidOf(owner);
      const wasDefault = before && recordLists(before.records).authServices.some(isDefault);
      return isDefault(record) && owner && newer.has(owner) && !wasDefault;
    });
    const [refused] = newer;
    return refused === undefined ? [] : found.map((record) => replacementError(record, refused.part.object));
  }

  function errorsBetween(records: readonly GatewayRecord[], namespaceOf: NamespaceOf): readonly ConfigurationError[] {
    const upstream = readUpstreamFiles(records, options.directory, files);
    files = upstream.found;
    const strangers = findStrangers(records, namespaceOf);
    const strange = new Set(strangers.map(({ source }) => source));
    const conflicts = findConflicts(records.filter(({ source }) => !strange.has(source)));
    return [...strangers, ...conflicts, ...upstream.errors, ...options.findUnservable(recordLists(records))];
  }

  /** Removes what is wrong between the objects, until nothing is. */
  async function settle(entries: readonly Entry[]): Promise<readonly GatewayRecord[]> {
    // The refused Mappings whose requests another one handles. Only counts while no version changes.
    let covered: ReadonlySet<unknown> = new Set();
    for (let round = 1; ; round += 1) {
      await readGuards(entries);
      const { records, owners } = assemble(entries, covered);
      const between = errorsBetween(records, (record) => owners.get(record.source)?.part.object.namespace ?? '');
      const errors = [...findReplacements(records, owners, entries), ...between];
      if (errors.length === 0) return records;
      const byEntry = groupBy(errors, ({ source }) => owners.get(source));
      const wrong = [...byEntry].filter(([{ version }]) => version !== undefined);
      covered = wrong.length > 0 ? new Set() : new Set([...covered, ...errors.map(({ source }) => source)]);
      demoteAll(firstOf(wrong, owners), entries, round > roundsMax);
      await nextTurn();
    }
  }

  /**
   * Mappings of one namespace may share requests by weight, or copy them. Those of another one would take requests, and
   * the credentials in them, from an older Mapping. Those of a route of the Gateway API share them only with each other.
   */
  function findStrangers(records: readonly GatewayRecord[], namespaceOf: NamespaceOf): readonly ConfigurationError[] {
    const mappings = recordLists(records).mappings.filter(({ gatewayRoute }) => gatewayRoute === undefined);
    return [...groupBy(mappings, groupOf).values()].flatMap((group) => {
      const owner = group.find(({ shadow }) => !shadow);
      if (owner === undefined) return [];
      const mayJoin = [...options.trusted, namespaceOf(owner)];
      const strangers = group.filter((mapping) => !mayJoin.includes(namespaceOf(mapping)));
      return strangers.map((mapping) => recordError(mapping, strangerFault(owner), owner));
    });
  }

  /** If it is late, no last valid version of their namespaces is used any more: each may be in conflict with the next. */
  function demoteAll(wrong: readonly Wrong[], entries: readonly Entry[], isLate: boolean): void {
    for (const [entry, found] of wrong) demote(entry, found, !isLate);
    if (!isLate) return;
    const namespaces = new Set(wrong.map(([{ part }]) => part.object.namespace));
    for (const entry of entries)
      if (entry.version !== entry.part && namespaces.has(entry.part.object.namespace)) entry.version = undefined;
  }

  function demote(entry: Entry, errors: readonly ConfigurationError[], mayUseLast: boolean): void {
    const { part, version } = entry;
    if (version === part) entry.errors = errors;
    const last = mayUseLast && version === part ? versions.takeLastValid(entry) : undefined;
    entry.version = last === part ? undefined : last;
  }

  return {
    async accept(objects, unusable = () => undefined) {
      const withRecords = objects.filter((object) => hasRecords(object, options.gatewayDomain));
      const entries = await versions.read(withRecords, unusable);
      const records = withWholeGroups(await settle(entries), withoutWeight);
      versions.remember(entries);
      const lists = recordLists(records);
      const addresses = entries.flatMap(({ version }) => version?.addresses ?? []);
      const outcome = { closed: closedBy(records), inUse: new Set(records.map(({ source }) => source)) };
      const verdicts = entries.map((entry) => verdictOf(entry, outcome, options.trusted));
      const [differences = []] = entries.map(({ part }) => part.differences).filter(({ length }) => length > 0);
      const unread = unreadNotices(objects, options.gatewayDomain);
      const notices = [...differences, ...unread, ...pathBypassNotices(lists, options.strictPaths)];
      return freezeDeep({
        records: { ...lists, addresses, upstreamFiles: files },
        verdicts,
        notices: [...notices, ...verdicts.flatMap((verdict) => verdict.notices)],
        certificates: [],
      });
    },
    undo: versions.undo,
  };
}

/** In turns, because an object may have many Mappings, and they are read only when it is refused. */
async function readGuards(entries: readonly Entry[]): Promise<void> {
  const refused = entries.filter(({ version }) => version === undefined);
  await mapInTurns(refused, ({ part }) => part.guards());
}

function strangerFault({ name }: Mapping): Fault {
  return {
    message: `Mapping ${name} of another namespace matches the same requests, and is older`,
    remedy: 'Choose another match: only Mappings of one namespace share requests by weight, or copy them.',
  };
}

function isDefault(service: AuthService): boolean {
  return service.isDefault;
}

function replacementError(record: AuthService, refused: ClusterObject): ConfigurationError {
  const name = nameOfObject(refused);
  const remedy = `Correct that object or delete it, or set default: false here, and auth_service: ${record.name} in the mappings that use it.`;
  const error = recordError(record, { message: `${name} is refused, and may be the default`, remedy });
  return { ...error, other: { file: name, line: 0 } };
}

/** Leaves out the objects that are only in conflict with others that are wrong themselves. */
function firstOf(wrong: readonly Wrong[], owners: ReadonlyMap<unknown, Entry>): readonly Wrong[] {
  const entries = new Set(wrong.map(([entry]) => entry));
  const isFirst = ([entry, errors]: Wrong) =>
    errors.some(({ other }) => {
      const owner = owners.get(other);
      return owner === undefined || owner === entry || !entries.has(owner);
    });
  const first = wrong.filter(isFirst);
  return first.length === 0 ? wrong : first;
}

type Wrong = readonly [Entry, readonly ConfigurationError[]];

/** Gives the rest of the requests for a match to a refused Mapping, if the weights of the others leave a rest. */
function withWholeGroups(
  records: readonly GatewayRecord[],
  withoutWeight: (mapping: Mapping) => Mapping,
): readonly GatewayRecord[] {
  const refused = recordLists(records).mappings.filter(({ refusal, weight }) => refusal !== undefined && weight);
  if (refused.length === 0) return records;
  const groups = groupBy(
    recordLists(records).mappings.filter(({ shadow }) => !shadow),
    groupOf,
  );
  const taking = new Set(
    [...new Set(refused.map(groupOf))].flatMap((key) => {
      const group = groups.get(key) ?? [];
      const isWhole = group.some(({ weight }) => weight === undefined) || weightOf(group) === 100;
      return isWhole ? [] : (group.findLast(({ refusal }) => refusal !== undefined) ?? []);
    }),
  );
  return records.map((record) => (record.kind === 'Mapping' && taking.has(record) ? withoutWeight(record) : record));
}

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K | undefined): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    if (key === undefined) throw new TypeError(`an error belongs to no object: ${JSON.stringify(item)}`);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** Returns a notice for each Mapping that is valid, but answers 503 because of another object. By its place. */
function closedBy(records: readonly GatewayRecord[]): ReadonlyMap<unknown, ConfigurationError> {
  const notices = new Map<unknown, ConfigurationError>();
  for (const record of recordLists(records).mappings) {
    const message = `answers 503, because ${record.refusal}`;
    if (record.refusal !== undefined)
      notices.set(record.source, recordError(record, { message, remedy: 'Correct that object, or delete it.' }));
  }
  return notices;
}

/** By the places of records. */
interface Outcome {
  /** The notices about valid Mappings that answer 503. */
  readonly closed: ReadonlyMap<unknown, ConfigurationError>;
  readonly inUse: ReadonlySet<unknown>;
}

function verdictOf(
  { part, version, errors }: Entry,
  { closed, inUse }: Outcome,
  trusted: readonly string[],
): ObjectVerdict {
  const { object } = part;
  const notices = [...part.notices, ...(version?.records ?? []).flatMap(({ source }) => closed.get(source) ?? [])];
  if (version === part) return { object, state: 'accepted', errors: [], notices, consequence: undefined };
  const own = { object, errors, notices };
  if (version !== undefined) return { ...own, state: 'last-valid', consequence: 'its last valid version stays' };
  const guarded = part.guards().mappings.filter(({ source }) => inUse.has(source));
  return { ...own, state: 'refused', consequence: consequenceOf(part, guarded, trusted) };
}

/** `guarded`: those of its Mappings that answer 503, because no older object has their match. */
function consequenceOf(
  { object, guards }: ObjectPart,
  guarded: readonly Mapping[],
  trusted: readonly string[],
): string {
  const { namespace } = object;
  const { hasUnknownMatch, mayGuardAll } = guards();
  const isTrusted = trusted.includes(namespace);
  const isMapping = object.kind === 'Mapping' || isRoute(object);
  const what = [
    ...(guarded.length > 0 ? [`requests that ${isMapping ? 'it matches' : 'its Mappings match'} get 503`] : []),
    ...(hasUnknownMatch ? [`the Mappings of ${namespace} with bypass_auth answer 503`] : []),
    ...(isTrusted ? withoutServices(guards()) : withoutForeignServices(guards(), namespace)),
    ...(mayGuardAll ? [`the Mappings of ${isTrusted ? 'all namespaces' : namespace} answer 503`] : []),
  ];
  return what.length === 0 ? `${nameOfObject(object)} has no effect` : what.join(', and ');
}

function withoutServices({ mayAuthenticate, deniedDomains }: Guards): readonly string[] {
  return [
    ...(mayAuthenticate ? ['Mappings that need it answer 503'] : []),
    ...(deniedDomains.length > 0 ? ['Mappings with labels for its domain answer 503'] : []),
  ];
}

function withoutForeignServices({ hasAuthService }: Guards, namespace: string): readonly string[] {
  return hasAuthService ? [`without a default AuthService, the Mappings of ${namespace} that need one answer 503`] : [];
}
