/** What a request passes on its way in. */
import cors from '@koa/cors';
import type { Context, Middleware } from 'koa';
import type { EntrySettings } from '#explain';
import {
  createAccessLog,
  createAddresses,
  createProblemResponses,
  createRequestContext,
  createSafePath,
  type ProblemResponsesOptions,
} from '#http';
import type { Settled } from './options.ts';

/** On whichever listener: its id, its span where somebody traces, and the line in the log. */
export function createArrival({ settings, logger }: Settled, tracing: Middleware | undefined): Middleware[] {
  return [createRequestContext(createAddresses(settings)), ...(tracing ? [tracing] : []), createAccessLog(logger)];
}

/** On the way to the gateway, in this order. `isAnswered`: a preflight that a mapping's own rule answers. */
export function createEntry(
  { settings }: Settled,
  responses: ProblemResponsesOptions,
  isAnswered: (ctx: Context) => boolean,
): Middleware[] {
  return [
    ...(settings.corsOrigins.length === 0 ? [] : [createCors(settings.corsOrigins, isAnswered)]),
    createProblemResponses(responses),
    createSafePath(settings),
  ];
}

/** What a script of another origin may read beside the safelisted headers. */
const exposed = [
  ...[
    'ETag',
    'Link',
    'Location',
    'Retry-After',
    'X-Request-Id',
    'RateLimit',
    'RateLimit-Policy',
    'Deprecation',
    'Sunset',
  ],
  ...['Limit', 'Remaining', 'Reset'].flatMap((name) => [`RateLimit-${name}`, `X-RateLimit-${name}`]),
];

/** Preflights end here, before anybody is asked for credentials, but for those that a mapping has rules of its own for. */
function createCors(origins: readonly string[], isAnswered: (ctx: Context) => boolean): Middleware {
  const answer = cors({ origin: (ctx) => allowedOrigin(origins, ctx), exposeHeaders: exposed });
  return (ctx, next) => (isAnswered(ctx) ? next() : answer(ctx, next));
}

/** The settings of this middleware, for explanations. */
export function createEntrySettings({ settings }: Settled): EntrySettings {
  const addresses = createAddresses(settings);
  const { corsOrigins, strictPaths } = settings;
  return { addresses, allowedOrigin: (ctx) => allowedOrigin(corsOrigins, ctx), strictPaths };
}

/** `''`: none. */
function allowedOrigin(origins: readonly string[], ctx: Context): string {
  return origins.includes('*') ? '*' : (origins.find((origin) => origin === ctx.get('Origin')) ?? '');
}
