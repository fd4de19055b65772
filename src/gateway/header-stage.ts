/** add_… and remove_… headers of a mapping whose requests stay in this process; across HTTP the proxy applies them. */
import type { Mapping } from '#config';
import { createHeaderRules } from '#proxy';
import type { Forward } from './forward-local.ts';

type Rules = Pick<Mapping, 'requestHeaders' | 'responseHeaders'>;

export function withHeaderRules({ requestHeaders, responseHeaders }: Rules, forward: Forward): Forward {
  const isIdle = [requestHeaders, responseHeaders].every(({ add, remove }) => add.length + remove.length === 0);
  if (isIdle) return forward;
  const { editRequest } = createHeaderRules(requestHeaders);
  const { editAnswer } = createHeaderRules(responseHeaders);
  return async function forwardEdited(ctx) {
    editRequest(ctx);
    await forward(ctx);
    editAnswer(ctx);
  };
}
