/** Reports to the cluster what became of its objects: writes only what they do not say already. */
import { type ClusterObject, type DesiredStatus, generationOf, isOwnKind, type ObjectVerdict } from '#config';
import { isMap, type Logger } from '#foundation';
import { eventAgain, eventOf } from './event.ts';
import { createGatewayStatuses } from './gateway-statuses.ts';
import { acceptedStatusOf, saysAlready, statusPatch, statusPlace } from './status.ts';
import { type VerdictText, verdictText } from './verdict-text.ts';
import { createWriteQueue, type WriteOutcome, type WriteQueueOptions } from './write-queue.ts';
import { createWriter, type WriteApi, type WriteResult } from './writer.ts';

export interface ReportsOptions {
  readonly api: WriteApi;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Returns milliseconds since the epoch. @default Date.now */
  readonly clock?: () => number;
  readonly queue?: WriteQueueOptions;
  /** How often refused writes are tried again, and Events looked after, in milliseconds. @default 600_000 */
  readonly againMs?: number;
}

/** Counts since the start. Several attempts of a write count as such. */
export interface WriteCounts {
  readonly statuses: { readonly succeeded: number; readonly failed: number };
  readonly events: { readonly succeeded: number; readonly failed: number };
  /** Writes that wait for their turn, or for the API server. */
  readonly waiting: number;
}

export interface Reports {
  /** Takes what became of all objects. Returns at once, and the writes follow. */
  readonly report: (verdicts: readonly ObjectVerdict[]) => void;
  /** Takes what all objects of the Gateway API are to say. Returns at once, and the writes follow. */
  readonly reportStatuses: (statuses: readonly DesiredStatus[]) => void;
  readonly writes: () => WriteCounts;
  /** Drops the writes that wait, and resolves when the others have ended. */
  readonly close: () => Promise<void>;
}

/** What this process has told an object, or has found that it had been told. */
interface Told {
  status?: { readonly text: string; readonly value: unknown; readonly againAtMs: number };
  event?: { readonly note: string; readonly isRefusal: boolean; readonly againAtMs: number };
}

interface EventNews {
  readonly object: ClusterObject;
  readonly text: VerdictText;
  readonly told: Told;
  /** An Event that is younger is that of another replica about the same change. */
  readonly ageMaxMs: number;
}

/** The API server forgets Events after an hour. */
const keptAliveMs = 25 * 60_000;
/** Replicas see a change within seconds of each other, but may have to wait for the API server. */
const sameChangeMs = 60_000;

export function openReports(options: ReportsOptions): Reports {
  const { api, logger, clock = Date.now, againMs = 600_000 } = options;
  const queue = createWriteQueue(options.queue);
  const writer = createWriter({ api, logger, forbiddenMs: againMs / 2 });
  const counts = { statuses: { succeeded: 0, failed: 0 }, events: { succeeded: 0, failed: 0 } };
  const toldByUid = new Map<string, Told>();
  let latest: readonly ObjectVerdict[] = [];
  const statuses = createGatewayStatuses({
    queue,
    writer,
    clock,
    againMs,
    count: (written) => count('statuses', written),
  });
  const timer = setInterval(() => {
    considerAll();
    statuses.considerAll();
  }, againMs).unref();

  function considerAll(): void {
    for (const verdict of latest) consider(verdict);
  }

  function consider(verdict: ObjectVerdict): void {
    const { object } = verdict;
    const text = verdictText(verdict);
    const known = toldByUid.get(object.uid);
    const told = known ?? toldAtFirst(object, text);
    toldByUid.set(object.uid, told);
    // The status of other kinds, such as Ambassador's, belongs to their own controllers.
    if (isOwnKind(object)) considerStatus(object, text, told);
    considerEvent(object, text, { told, isFirst: known === undefined });
  }

  /** The status of our own kinds says which Events they have had. */
  function toldAtFirst(object: ClusterObject, text: VerdictText): Told {
    if (!isOwnKind(object) || acceptedStatusOf(object) !== 'False') return {};
    const note = saysAlready(object, text) ? text.note : '';
    return { event: { note, isRefusal: true, againAtMs: Number.POSITIVE_INFINITY } };
  }

  function considerStatus(object: ClusterObject, text: VerdictText, told: Told): void {
    const key = `status ${object.uid}`;
    if (saysAlready(object, text)) {
      queue.drop(key);
      return;
    }
    const said = JSON.stringify([generationOf(object), text]);
    // Replicas of two releases may use different words, and none of them insists on its own.
    const isTold = () =>
      told.status?.text === said && (told.status.value === object.value || clock() < told.status.againAtMs);
    if (isTold()) return;
    queue.add(key, async () => {
      if (isTold()) return 'done';
      const patch = statusPatch(object, text, clock());
      const written = await writer.send({ verb: 'patch', ...statusPlace(object), body: patch });
      const value = written.result === 'refused' ? undefined : object.value;
      if (written.result !== 'later') told.status = { text: said, value, againAtMs: clock() + againMs };
      return count('statuses', written);
    });
  }

  function considerEvent(
    object: ClusterObject,
    text: VerdictText,
    { told, isFirst }: { readonly told: Told; readonly isFirst: boolean },
  ): void {
    const isNew = () => (text.isAccepted ? told.event?.isRefusal === true : told.event?.note !== text.note);
    const isDue = () => isNew() || (!text.isAccepted && clock() >= (told.event?.againAtMs ?? 0));
    if (!isDue()) {
      queue.drop(`event ${object.uid}`);
      return;
    }
    const ageMaxMs = isNew() && !isFirst ? sameChangeMs : keptAliveMs;
    queue.add(`event ${object.uid}`, async () => (isDue() ? writeEvent({ object, text, told, ageMaxMs }) : 'done'));
  }

  async function writeEvent(news: EventNews): Promise<WriteOutcome> {
    const { object, text, told } = news;
    const written = await sendEvent(news);
    const keptMs = isOwnKind(object) ? Number.POSITIVE_INFINITY : keptAliveMs;
    const againAtMs = clock() + (written.result === 'refused' ? againMs : keptMs);
    if (written.result !== 'later') told.event = { note: text.note, isRefusal: !text.isAccepted, againAtMs };
    return count('events', written);
  }

  /** Creates the Event. If it is there already and old, it has happened again. */
  async function sendEvent({ object, text, ageMaxMs }: EventNews): Promise<WriteResult> {
    const { collection, path, body } = eventOf(object, text, clock());
    const target = { group: '', resource: 'events' };
    const created = await writer.send({ ...target, verb: 'create', path: collection, body });
    if (created.result !== 'exists') return created;
    const found = await writer.send({ ...target, verb: 'get', path });
    if (found.result !== 'ok' || !isMap(found.body)) return found;
    const { count, lastTimestamp } = found.body;
    if (clock() - Date.parse(String(lastTimestamp)) < ageMaxMs) return created;
    return writer.send({ ...target, verb: 'patch', path, body: eventAgain(count, clock()) });
  }

  function count(kind: 'statuses' | 'events', { result, retryAfterMs }: WriteResult): WriteOutcome {
    if (result === 'ok') counts[kind].succeeded += 1;
    if (result === 'refused' || result === 'later') counts[kind].failed += 1;
    return result === 'later' ? { retryAfterMs } : 'done';
  }

  return Object.freeze({
    report(verdicts: readonly ObjectVerdict[]) {
      const uids = new Set(verdicts.map(({ object }) => object.uid));
      for (const uid of toldByUid.keys()) {
        if (uids.has(uid)) continue;
        toldByUid.delete(uid);
        for (const kind of ['status', 'event']) queue.drop(`${kind} ${uid}`);
      }
      latest = verdicts;
      considerAll();
    },
    reportStatuses: statuses.report,
    writes: () => ({ statuses: { ...counts.statuses }, events: { ...counts.events }, waiting: queue.waiting() }),
    close() {
      clearInterval(timer);
      return queue.close();
    },
  });
}
