/** add_… and remove_… headers of a mapping whose requests stay in this process; across HTTP the proxy applies them. */
import type { HeaderRules, Mapping } from '#config';
import { createHeaderRules } from '#proxy';
import type { Forward } from './forward-local.ts';

type Rules = Pick<Mapping, 'requestHeaders' | 'responseHeaders'>;

export function withHeaderRules({ requestHeaders, responseHeaders }: Rules, forward: Forward): Forward {
  if (!hasRules(requestHeaders) && !hasRules(responseHeaders)) return forward;
  const { editRequest } = createHeaderRules(requestHeaders);
  const { editResponse } = createHeaderRules(responseHeaders);
  return async function forwardEdited(ctx) {
    editRequest(ctx);
    await forward(ctx);
    editResponse(ctx);
  };
}

export function hasRules({ add, remove }: HeaderRules): boolean {
  return add.length + remove.length > 0;
}
