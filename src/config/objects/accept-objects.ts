/** Accepts or refuses each object of a cluster by itself, so that the mistake of one team stops nobody else. */
import type { AddressRecord } from '../ambassador/addresses.ts';
import type { ConfigurationError, Fault } from '../errors.ts';
import { freezeDeep } from '../load.ts';
import { pathBypassNotices } from '../path-bypasses.ts';
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
import { hasRecords, type ObjectOptions, type ObjectPart, readObject } from './read-object.ts';
import { refusedService } from './refused-mapping.ts';
import { unreadNotices } from './unread-notices.ts';

export interface AcceptanceOptions extends ObjectOptions {
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
    service: refusedService,
  };
  const refusal = 'the objects of the cluster have not been read yet';
  return { ...record, refusal, source: { file: 'the cluster', line: 0 } };
}

export interface ObjectAcceptance {
  /** Takes all objects of the cluster, the oldest first. Must not be called concurrently. */
  readonly accept: (objects: readonly ClusterObject[]) => Promise<AcceptedObjects>;
}

/** An object, and the version of it that counts. */
interface Entry {
  readonly part: ObjectPart;
  /** Undefined if it is refused and has no valid version. */
  version: ObjectPart | undefined;
  /** Why it is refused. */
  errors: readonly ConfigurationError[];
}

type NamespaceOf = (record: GatewayRecord) => string;

/** After these rounds, what is wrong between objects is settled without last valid versions. */
const roundsMax = 100;

/**
 * An object is refused as a whole if one of its records is wrong. Its last valid version then stays, as long as this
 * object of the cluster exists and this acceptance does. Without one, it fails closed for what it may guard:
 *
 * - Requests that its Mappings match get 503.
 * - If such a match cannot be read, so do those of the Mappings with `bypass_auth` in its namespace.
 * - Without the AuthService that it may be, so do those of all Mappings that need the default one. One that does not count
 *   closes only those of its namespace.
 *
 * Of objects in conflict, the older one counts.
 */
export function createObjectAcceptance(options: AcceptanceOptions): ObjectAcceptance {
  let parts: ReadonlyMap<string, ObjectPart> = new Map();
  let lastValid: ReadonlyMap<string, ObjectPart> = new Map();
  const refusedCopy = createCopies<Mapping>();
  const weightlessCopy = createCopies<Mapping>();
  const withRefusal = (mapping: Mapping, refusal: string) =>
    refusedCopy(mapping, refusal, () => ({ ...mapping, refusal }));
  const withoutWeight = (mapping: Mapping) => weightlessCopy(mapping, '', () => ({ ...mapping, weight: undefined }));
  const names = createNames(options.trusted);
  let files: readonly UpstreamFile[] = [];

  function partOf(object: ClusterObject): ObjectPart {
    const known = parts.get(object.uid);
    return known !== undefined && known.object.value === object.value ? known : readObject(object, options);
  }

  /** The records of these versions, as a whole and by the object that they come from. Leaves out what is `covered`. */
  function assemble(entries: readonly Entry[], covered: ReadonlySet<unknown>) {
    const owners = new Map<unknown, Entry>();
    const guards = guardsOf(entries, options.trusted);
    const chosen = entries.map(({ part, version }) => {
      return version?.records ?? part.guards().mappings.filter(({ source }) => !covered.has(source));
    });
    const authServices = recordLists(chosen.flat()).authServices;
    const hasDefault = authServices.some(({ isDefault }) => isDefault);
    const known = names.among(chosen.flat());
    const records = entries.flatMap((entry, index) =>
      (chosen[index] ?? []).map((record) => {
        owners.set(record.source, entry);
        const placed = known.resolve(record, entry.part.object.namespace);
        const reason = placed.kind === 'Mapping' && refusalOf(placed, entry.part.object, guards, hasDefault);
        return reason ? withRefusal(placed as Mapping, reason) : placed;
      }),
    );
    return { records, owners };
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
      const { records, owners } = assemble(entries, covered);
      const errors = errorsBetween(records, (record) => owners.get(record.source)?.part.object.namespace ?? '');
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
    const last = lastValid.get(part.object.uid);
    if (version === part) entry.errors = errors;
    entry.version = mayUseLast && version === part && last !== part ? last : undefined;
  }

  /** Forgets the objects that no longer exist. */
  function remember(entries: readonly Entry[]): void {
    parts = new Map(entries.map(({ part }) => [part.object.uid, part]));
    const valid = entries.map(({ part: { object }, part, version }) => {
      return [object.uid, version === part ? part : lastValid.get(object.uid)] as const;
    });
    lastValid = new Map(valid.flatMap(([uid, part]) => (part === undefined ? [] : [[uid, part] as const])));
  }

  return {
    async accept(objects) {
      const withRecords = objects.filter((object) => hasRecords(object, options.gatewayDomain));
      const read = await mapInTurns(withRecords, partOf);
      const entries = read.map((part): Entry => {
        const version = part.errors.length === 0 ? part : lastValid.get(part.object.uid);
        return { part, version, errors: part.errors };
      });
      const records = withWholeGroups(await settle(entries), withoutWeight);
      remember(entries);
      const lists = recordLists(records);
      const addresses = entries.flatMap(({ version }) => version?.addresses ?? []);
      const outcome = { closed: closedBy(records), inUse: new Set(records.map(({ source }) => source)) };
      const verdicts = entries.map((entry) => verdictOf(entry, outcome, options.trusted));
      const [differences = []] = read.map((part) => part.differences).filter(({ length }) => length > 0);
      const unread = unreadNotices(objects, options.gatewayDomain);
      const notices = [...differences, ...unread, ...pathBypassNotices(lists, options.strictPaths)];
      return freezeDeep({
        records: { ...lists, addresses, upstreamFiles: files },
        verdicts,
        notices: [...notices, ...verdicts.flatMap((verdict) => verdict.notices)],
        certificates: [],
      });
    },
  };
}

function strangerFault({ name }: Mapping): Fault {
  return {
    message: `Mapping ${name} of another namespace matches the same requests, and is older`,
    remedy: 'Choose another match: only Mappings of one namespace share requests by weight, or copy them.',
  };
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

/** Which objects without a valid version may guard what: the name of the oldest one, of a namespace or of all. */
interface AllGuards {
  /** Of the trusted namespaces. */
  readonly mayAuthenticate: string | undefined;
  /** The namespaces with an AuthService that does not count. */
  readonly withAuthService: ReadonlyMap<string, string>;
  readonly mayGuardAll: string | undefined;
  readonly withUnknownMatch: ReadonlyMap<string, string>;
  readonly withOtherGuard: ReadonlyMap<string, string>;
}

function guardsOf(entries: readonly Entry[], trusted: readonly string[]): AllGuards {
  const refused = entries.filter(({ version }) => version === undefined).map(({ part }) => part);
  const having = (isSo: (guards: Guards) => boolean) => {
    const found = refused.filter((part) => isSo(part.guards())).map(({ object }) => object);
    return new Map(found.reverse().map((object) => [object.namespace, nameOfObject(object)]));
  };
  const oldestOf = (names: ReadonlyMap<string, string>) => trusted.flatMap((one) => names.get(one) ?? [])[0];
  const withOtherGuard = having(({ mayGuardAll }) => mayGuardAll);
  const withAuth = having(({ mayAuthenticate }) => mayAuthenticate);
  return {
    mayAuthenticate: oldestOf(withAuth),
    withAuthService: having(({ hasAuthService }) => hasAuthService),
    mayGuardAll: oldestOf(withOtherGuard),
    withUnknownMatch: having(({ hasUnknownMatch }) => hasUnknownMatch),
    withOtherGuard,
  };
}

/** Returns why a valid Mapping has to answer 503, if it has. */
function refusalOf(
  { refusal, redirect, bypassAuth, authService }: Mapping,
  { namespace }: ClusterObject,
  guards: AllGuards,
  hasDefault: boolean,
): string | undefined {
  if (refusal !== undefined) return undefined;
  const guard = guards.mayGuardAll ?? guards.withOtherGuard.get(namespace);
  if (guard !== undefined) return `${guard} is refused, which may protect its requests`;
  const unknown = bypassAuth ? guards.withUnknownMatch.get(namespace) : undefined;
  if (unknown !== undefined) return `${unknown} is refused, and what it matches cannot be read`;
  const needsDefault = !bypassAuth && authService === undefined && redirect === undefined;
  if (!needsDefault || hasDefault) return undefined;
  const service = guards.mayAuthenticate ?? guards.withAuthService.get(namespace);
  return service && `${service} is refused, and there is no other AuthService`;
}

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
  const { hasUnknownMatch, mayAuthenticate, hasAuthService, mayGuardAll } = guards();
  const isTrusted = trusted.includes(object.namespace);
  const isMapping = object.kind === 'Mapping';
  const what = [
    ...(guarded.length > 0 ? [`requests that ${isMapping ? 'it matches' : 'its Mappings match'} get 503`] : []),
    ...(hasUnknownMatch ? [`the Mappings of ${object.namespace} with bypass_auth answer 503`] : []),
    ...(mayAuthenticate && isTrusted ? ['Mappings that need it answer 503'] : []),
    ...(hasAuthService && !isTrusted
      ? [`without a default AuthService, the Mappings of ${object.namespace} that need one answer 503`]
      : []),
    ...(mayGuardAll ? [`the Mappings of ${isTrusted ? 'all namespaces' : object.namespace} answer 503`] : []),
  ];
  return what.length === 0 ? `${nameOfObject(object)} has no effect` : what.join(', and ');
}
