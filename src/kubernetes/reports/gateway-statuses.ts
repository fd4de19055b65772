/** Writes the statuses of the Gateway API, each on top of what was read just before, because others write there too. */
import { type ClusterObject, type DesiredStatus, gatewayApiGroup, generationOf } from '#config';
import { type Fields, isMap, sortedJson } from '#foundation';
import { gatewayApiPlurals } from '../gateway-api.ts';
import { statusChange } from './merge-status.ts';
import type { WriteOutcome, WriteQueue } from './write-queue.ts';
import type { WriteResult, Writer } from './writer.ts';

export interface GatewayStatusOptions {
  readonly queue: WriteQueue;
  readonly writer: Writer;
  /** Returns milliseconds since the epoch. */
  readonly clock: () => number;
  /** After how long an object is read again, to see whether it still says the same, in milliseconds. */
  readonly againMs: number;
  readonly count: (written: WriteResult) => WriteOutcome;
}

/** What this process has told an object, or has found that it says. */
interface Told {
  /** Undefined while a write is on its way. */
  readonly text: string | undefined;
  readonly againAtMs: number;
}

/** After so many changes of others in between, the write waits. */
const attemptsMax = 3;

export function createGatewayStatuses({ queue, writer, clock, againMs, count }: GatewayStatusOptions) {
  const toldByUid = new Map<string, Told>();
  let latest = new Map<string, DesiredStatus>();

  function consider({ object, status }: DesiredStatus): void {
    const { uid, value } = object;
    if (toldByUid.get(uid) === undefined && statusChange((value as Fields)['status'], status, clock()) === undefined)
      toldByUid.set(uid, { text: textOf({ object, status }), againAtMs: clock() + againMs });
    if (isTold({ object, status })) queue.drop(keyOf(uid));
    else queue.add(keyOf(uid), () => write(uid));
  }

  function isTold(desired: DesiredStatus): boolean {
    const told = toldByUid.get(desired.object.uid);
    return told?.text === textOf(desired) && clock() < told.againAtMs;
  }

  async function write(uid: string): Promise<WriteOutcome> {
    const desired = latest.get(uid);
    if (desired === undefined || isTold(desired)) return 'done';
    toldByUid.set(uid, { text: undefined, againAtMs: 0 });
    const written = await send(desired);
    if (written.result !== 'later' && latest.has(uid))
      toldByUid.set(uid, { text: textOf(desired), againAtMs: clock() + againMs });
    return count(written);
  }

  async function send(desired: DesiredStatus): Promise<WriteResult> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const written = await sendOnce(desired);
      if (written.result !== 'changed') return written;
    }
    return { result: 'later' };
  }

  async function sendOnce({ object, status }: DesiredStatus): Promise<WriteResult> {
    const { path, resource } = placeOf(object);
    const group = gatewayApiGroup;
    const found = await writer.send({ verb: 'get', group, resource, path });
    if (found.result !== 'ok' || !isMap(found.body)) return found;
    const { uid, generation, resourceVersion } = metadataOf(found.body);
    // A newer version has its own status, which follows when it has been read.
    if (uid !== object.uid || generation !== generationOf(object)) return { result: 'gone' };
    const change = statusChange(found.body['status'], status, clock());
    if (change === undefined) return { result: 'exists' };
    const target = { verb: 'patch', group, resource: `${resource}/status`, path: `${path}/status` } as const;
    return writer.send({ ...target, body: { status: change }, resourceVersion: String(resourceVersion) });
  }

  return {
    /** Takes what all objects are to say. Those that are not among them any more stay as they are. */
    report(statuses: readonly DesiredStatus[]): void {
      latest = new Map(statuses.map((desired) => [desired.object.uid, desired]));
      for (const uid of toldByUid.keys()) {
        if (latest.has(uid)) continue;
        toldByUid.delete(uid);
        queue.drop(keyOf(uid));
      }
      statuses.forEach(consider);
    },
    considerAll: () => latest.forEach(consider),
  };
}

function keyOf(uid: string): string {
  return `status ${uid}`;
}

function textOf({ object, status }: DesiredStatus): string {
  return sortedJson([generationOf(object), status]);
}

function metadataOf({ metadata }: Fields): Fields {
  return isMap(metadata) ? metadata : {};
}

function placeOf({ apiVersion, kind, namespace, name }: ClusterObject) {
  const resource = String(gatewayApiPlurals[kind]);
  const place = namespace === '' ? '' : `/namespaces/${namespace}`;
  return { resource, path: `/apis/${apiVersion}${place}/${resource}/${encodeURIComponent(name)}` };
}
