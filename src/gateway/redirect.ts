/** A mapping that is a redirect: answered at once, before anybody is asked who the client is. */
import { pathOf, problem, publicBase, searchOf } from '#http';
import type { Redirection } from '#routing';
import type { Forward } from './forward-local.ts';

export function createRedirect(redirection: Redirection, status: number): Forward {
  return async function redirect(ctx) {
    const { url } = ctx;
    const location = redirection({ path: pathOf(url), search: searchOf(url) }, publicBase(ctx));
    if (location === undefined)
      throw problem('bad-path', { detail: 'The path cannot be read in one way only after it is redirected.' });
    ctx.set('Location', location);
    ctx.body = null;
    ctx.status = status;
  };
}
