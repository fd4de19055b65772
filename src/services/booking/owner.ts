/** Whose bookings a request is about: the user that the gateway's auth service named. */
import type { Context } from 'koa';
import { problem } from '#http';

/** Throws `unauthorized` when nobody is named: the service was called past the gateway. */
export function ownerOf(ctx: Context): string {
  const user = ctx.req.headers['x-travel-user'];
  if (typeof user === 'string' && user !== '') return user;
  throw problem('unauthorized', {
    detail: 'Bookings belong to a user: call this service through the gateway.',
    headers: { 'WWW-Authenticate': 'Basic realm="travel", charset="UTF-8"' },
  });
}
