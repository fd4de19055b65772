/** A way to a service that is made when its first request comes: of 10,000 mappings most wait long for one. */
import type { Mapping } from '#config';
import type { Forward } from './forward-local.ts';

/** With a pattern it is made at once: one that does not compile must be told of when the gateway is made. */
export function deferForward({ regexRewrite }: Pick<Mapping, 'regexRewrite'>, make: () => Forward): Forward {
  if (regexRewrite !== undefined) return make();
  let forward: Forward | undefined;
  return function forwardWhenMade(ctx) {
    forward ??= make();
    return forward(ctx);
  };
}
