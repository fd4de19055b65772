/** Carries out a request with an `Idempotency-Key` once, and responds to its repetitions as to the first. */
import type { Context } from 'koa';
import { createBoundedMap } from '#foundation';
import { problem, requestContext, type StoredResponse, userHeader } from '#http';
import { idempotencyMismatch, requestDigest } from './idempotency-key.ts';

/** Identifies the repetitions of a request by one caller to one path. */
export interface RequestIdentity {
  /** The client's key, unique per user, method and path. At most 255 characters. */
  readonly key: string;
  /** Fingerprint of the body, which must not change when the key is reused. 43 characters. */
  readonly fingerprint: string;
}

export interface WriteResult {
  /** The result of `responseFor` for this request, or for the earlier one with the same key. */
  readonly response: StoredResponse;
  /** True if an earlier request with the same key wrote the item, and this one wrote nothing. */
  readonly isReplayed: boolean;
}

/** A request that has begun. */
export interface KnownRequest {
  readonly fingerprint: string;
  /** Undefined while the request is under way. */
  readonly response: StoredResponse | undefined;
}

/**
 * Stores requests and their responses. Implement it to share them between processes and to keep them across restarts.
 * An `id` is 64 hexadecimal digits, and a fingerprint 43 characters. Keep each response for 24 hours, as the
 * documentation of the routes promises, and a request without a response long enough to outlast any that still runs: its
 * process may have crashed. If a call rejects, the client gets 500.
 */
export interface IdempotencyStore {
  /**
   * Stores that the request has begun and returns undefined, or returns the request that has begun with this `id`. Must
   * be atomic: of two calls at the same time, only one may return undefined.
   */
  readonly begin: (id: string, fingerprint: string) => KnownRequest | undefined | Promise<KnownRequest | undefined>;
  /** Adds the response to a request that has begun. */
  readonly finish: (id: string, response: StoredResponse) => unknown;
  /** Forgets a request that has begun, because it failed and wrote nothing. */
  readonly cancel: (id: string) => unknown;
}

export interface IdempotencyOptions {
  /** @default one in memory, for this process alone, which keeps the responses to the last 10,000 requests */
  readonly store?: IdempotencyStore;
  /**
   * Returns what identifies the caller, so that no caller gets the response to a request of another.
   * @default the `Authorization` header, and the user that `basicAuth` or the gateway authenticated
   */
  readonly caller?: (ctx: Context) => string;
}

/** Runs `work` unless an earlier request with the same identity did. A request without an identity always runs. */
export type RunOnce = <Response extends StoredResponse | undefined>(
  ctx: Context,
  identity: RequestIdentity | undefined,
  work: () => Promise<Response>,
) => Promise<{ readonly response: Response; readonly isReplayed: boolean }>;

/**
 * Creates a function that throws `idempotency-mismatch` if the body differs from that of the first request, and
 * `idempotency-running` while that one is under way. Nothing is stored if `work` throws or finds no item.
 */
export function createRunOnce({ store = createMemoryStore(), caller = callerOf }: IdempotencyOptions = {}): RunOnce {
  return async function runOnce(ctx, identity, work) {
    if (identity === undefined) return { response: await work(), isReplayed: false };
    const { key, fingerprint } = identity;
    const id = requestDigest([caller(ctx), ctx.method, requestContext(ctx).basePath + ctx.path, key]);
    const known = await store.begin(id, fingerprint);
    if (known !== undefined) return { response: replay(known, fingerprint) as never, isReplayed: true };
    const response = await workOrCancel(store, id, work);
    if (response === undefined) await store.cancel(id);
    else await store.finish(id, response);
    return { response, isReplayed: false };
  };
}

async function workOrCancel<Response>(
  { cancel }: IdempotencyStore,
  id: string,
  work: () => Promise<Response>,
): Promise<Response> {
  try {
    return await work();
  } catch (error) {
    await cancel(id);
    throw error;
  }
}

function replay(known: KnownRequest, fingerprint: string): StoredResponse {
  if (known.fingerprint !== fingerprint) throw idempotencyMismatch();
  if (known.response === undefined) throw problem('idempotency-running');
  return known.response;
}

function callerOf({ req: { headers } }: Context): string {
  return JSON.stringify([headers.authorization, headers[userHeader]]);
}

const keptMax = 10_000;
const keptMs = 24 * 3_600_000;

interface Finished extends KnownRequest {
  readonly finishedAtMs: number;
}

/** Keeps responses in memory: for 24 hours, but only the last 10,000. Never forgets a request that is under way. */
export function createMemoryStore({ clock = Date.now }: { readonly clock?: () => number } = {}): IdempotencyStore {
  const underWay = new Map<string, KnownRequest>();
  const finished = createBoundedMap<string, Finished>(keptMax);
  return {
    begin(id, fingerprint) {
      const earlier = finished.get(id);
      if (earlier !== undefined && clock() - earlier.finishedAtMs < keptMs) return earlier;
      const running = underWay.get(id);
      if (running === undefined) underWay.set(id, { fingerprint, response: undefined });
      return running;
    },
    finish(id, response) {
      const begun = underWay.get(id);
      underWay.delete(id);
      if (begun !== undefined) finished.set(id, { ...begun, response, finishedAtMs: clock() });
    },
    cancel: (id) => underWay.delete(id),
  };
}
