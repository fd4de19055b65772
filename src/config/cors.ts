/** cors: which origins may use a Mapping from a browser, and how. */
import * as z from 'zod';
import { commaList, either } from './choices.ts';
import { complain, type Fault, headerName, refuseEmpty, strict, text, wholeNumber } from './fields.ts';
import type { CorsRule } from './mapping-parts.ts';
import { methodFault } from './methods.ts';

const maxAgeSecondsMax = 31_536_000;

const seconds = z
  .string()
  .transform((written) => (/^\d{1,10}$/.test(written) ? Number(written) : Number.NaN))
  .pipe(wholeNumber(0, maxAgeSecondsMax));

const names = commaList().pipe(z.array(headerName())).default([]);

const fields = strict({
  origins: commaList().pipe(
    z.array(text(originFault)).check(refuseEmpty('Name an origin: origins: [https://app.example.com]')),
  ),
  methods: commaList()
    .pipe(z.array(text(methodFault)))
    .default(['GET', 'HEAD', 'POST']),
  headers: names,
  exposed_headers: names,
  credentials: z.boolean().default(false),
  max_age: either<number>((value) =>
    typeof value === 'string' ? seconds : wholeNumber(0, maxAgeSecondsMax),
  ).optional(),
});

export const corsSchema = fields.check(refuseStars).transform(
  (given): CorsRule => ({
    origins: given.origins,
    methods: given.methods,
    headers: given.headers,
    exposedHeaders: given.exposed_headers,
    credentials: given.credentials,
    maxAgeSeconds: given.max_age,
  }),
);

/** With credentials a star stands for itself (Fetch standard, section 3.3.4), and never for everything. */
function refuseStars(payload: z.core.ParsePayload<z.infer<typeof fields>>): void {
  const { origins, credentials, ...lists } = payload.value;
  if (origins.includes('*') && origins.length > 1) {
    complain(payload, ['origins'], {
      message: 'holds "*" beside others',
      remedy: 'Write "*" alone, or list the origins.',
    });
  }
  if (!credentials) return;
  for (const [field, list] of Object.entries({ origins, ...lists })) {
    if (!Array.isArray(list) || !list.includes('*')) continue;
    complain(payload, [field], {
      message: 'is "*" beside credentials: true',
      remedy: 'Browsers refuse that: list them one by one.',
    });
  }
}

/** RFC 6454 section 6.2, as browsers write it in `Origin`. */
function originFault(origin: string): Fault | undefined {
  if (origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin)) return undefined;
  const meant = URL.canParse(origin) ? new URL(origin).origin : 'null';
  return {
    message: `${JSON.stringify(origin)} is not an origin`,
    remedy:
      meant === 'null' ? 'Write scheme and host: "https://app.example.com".' : `Write it as ${JSON.stringify(meant)}.`,
  };
}
