/** Ids of things and bookings in a path. */
import type { Context } from 'koa';

/** The id that the route names, in lower case. RFC 9562: that is canonical, upper case is accepted. */
export function idOf(ctx: Context): string | undefined {
  const { id } = ctx['params'];
  return /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(id) ? id.toLowerCase() : undefined;
}
