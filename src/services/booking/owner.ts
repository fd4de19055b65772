/** Whose bookings a request is about: the user that the gateway's auth service named. */
import type { Context } from 'koa';
import { problem } from '#http';

/** Believed as it stands, so a gateway must let no client send it. */
export const userHeader = 'x-travel-user';

/** Throws `unauthorized` when nobody is named: the service was called past the gateway. */
export function ownerOf(ctx: Context): string {
  const user = ctx.req.headers[userHeader];
  if (typeof user === 'string' && user !== '') return user;
  throw problem('unauthorized', {
    detail: 'Bookings belong to a user: call this service through the gateway.',
    headers: { 'WWW-Authenticate': 'Basic realm="travel", charset="UTF-8"' },
  });
}
