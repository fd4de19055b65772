/** Keeps the resources that WebDAV's headers name behind the mapping of the request, which has the authentication and limits for them. */
import type { Context } from 'koa';
import { problem } from '#http';
import { referenceBase } from '#proxy';
import { editReferences, firstShare, type RequestAttributes, readReference, type Table } from '#routing';
import type { CheckReading } from './check-reading.ts';
import type { Route } from './route.ts';

/** Throws `bad-path`, `bad-request` and `destination-elsewhere`. Looks at a request, its attributes and the route that it has met. */
export type CheckReferences = (ctx: Context, attributes: RequestAttributes, route: Route) => void;

/** More than the locks of one change; each is matched like a request. */
const referencesMax = 32;

export function createCheckReferences({ match }: Table<Route>, checkReading?: CheckReading): CheckReferences {
  return function checkReferences(ctx, attributes, route) {
    const { method, headers } = ctx.req;
    let count = 0;
    editReferences(method, headers, (text) => {
      count += 1;
      if (count > referencesMax)
        throw problem('bad-request', {
          detail: `\`Destination\` and \`If\` name more than ${referencesMax} resources.`,
        });
      const found = readReference(text, referenceBase(ctx));
      if (found === 'ambiguous')
        throw problem('bad-path', { detail: 'The path in `Destination` or `If` cannot be read in one way only.' });
      if (found === 'elsewhere') throw problem('destination-elsewhere');
      const { path, search } = found;
      const there: RequestAttributes = Object.assign(Object.create(attributes), { path, search });
      if (match(there, firstShare)?.route !== match(attributes, firstShare)?.route)
        throw problem('destination-elsewhere');
      checkReading?.(there, route);
      return text;
    });
  };
}
