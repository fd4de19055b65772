/** The permanent redirect that keeps the method (RFC 9110 section 15.4.9). */
import type { Context } from 'koa';

/** `location`: path-absolute, with the mount path and the query. It cannot lead to another host. */
export function redirectTo(ctx: Context, location: string): void {
  ctx.set('Location', location.replace(/^\/[/\\]+/, '/'));
  ctx.body = null;
  ctx.status = 308;
}
