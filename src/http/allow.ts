/** The answer where a resource exists but the method is not one that reads or changes it: OPTIONS, or 405. */
import type { Context } from 'koa';
import { problem } from './problem.ts';

/** `allowed`: the methods, OPTIONS included. Answers OPTIONS with 204, and throws `method-not-allowed` for any other (RFC 9110 section 15.5.6). */
export function answerMethod(ctx: Context, allowed: readonly string[]): void {
  const allow = allowed.join(', ');
  if (ctx.method !== 'OPTIONS') {
    throw problem('method-not-allowed', { detail: `This resource takes ${allow}.`, headers: { Allow: allow } });
  }
  ctx.set('Allow', allow);
  ctx.status = 204;
}

const readMethods = ['GET', 'HEAD', 'OPTIONS'];

/** For an endpoint with exactly one path that is only read. False: the request was OPTIONS, and is answered. Throws `not-found` and `method-not-allowed`. */
export function isRead(ctx: Context, path: string): boolean {
  if (ctx.path !== path) throw problem('not-found');
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return true;
  answerMethod(ctx, readMethods);
  return false;
}
