/** Rejects WebDAV requests whose headers refer to a resource behind another mapping, whose checks they would bypass. */
import type { Context } from 'koa';
import { problem } from '#http';
import { referenceBase } from '#proxy';
import { editReferences, firstShare, type RequestAttributes, readReference, type Table } from '#routing';
import type { CheckAmbiguity } from './check-ambiguity.ts';
import type { Route } from './route.ts';

/** Throws `bad-path`, `bad-request` or `destination-elsewhere`. `route` is the route that the request matched. */
export type CheckReferences = (ctx: Context, attributes: RequestAttributes, route: Route) => void;

/** Bounds the work, because each reference is matched like a request. Clients refer to far fewer resources. */
const referencesMax = 32;

export function createCheckReferences({ match }: Table<Route>, checkAmbiguity?: CheckAmbiguity): CheckReferences {
  return function checkReferences(ctx, attributes, route) {
    const { method, headers } = ctx.req;
    let count = 0;
    editReferences(method, headers, (text) => {
      count += 1;
      if (count > referencesMax)
        throw problem('bad-request', {
          detail: `\`Destination\` and \`If\` refer to more than ${referencesMax} resources.`,
        });
      const found = readReference(text, referenceBase(ctx));
      if (found === 'ambiguous')
        throw problem('bad-path', { detail: 'The path in `Destination` or `If` is ambiguous.' });
      if (found === 'elsewhere') throw problem('destination-elsewhere');
      const { path, search } = found;
      const target: RequestAttributes = Object.assign(Object.create(attributes), { path, search });
      if (match(target, firstShare)?.route !== match(attributes, firstShare)?.route)
        throw problem('destination-elsewhere');
      checkAmbiguity?.(target, route);
      return text;
    });
  };
}
