/** Marks responses whose body is stored for the whole life of the process, so that it is compressed only once. */
import type { Context } from 'koa';

export interface StoredBody {
  readonly body: string;
}

const storedKey = Symbol('stored body');

interface Carrier {
  [storedKey]?: StoredBody;
}

/** `stored` must be the same object for every response with this body. */
export function markStored(ctx: Context, stored: StoredBody): void {
  (ctx as Carrier)[storedKey] = stored;
}

/** Undefined if the body has been replaced since. */
export function storedBody(ctx: Context): StoredBody | undefined {
  const stored = (ctx as Carrier)[storedKey];
  return stored?.body === ctx.body ? stored : undefined;
}
