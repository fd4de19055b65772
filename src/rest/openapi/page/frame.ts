/** The parts of the documentation page that depend on the request: links to other pages, and the end of the version. */
import type { Context } from 'koa';
import {
  gatewayRoot,
  homeOf,
  html,
  type Lifecycle,
  lifecycleOf,
  type Markup,
  parseLifecycle,
  requestContext,
} from '#http';
import type { PageFrame } from './page.ts';

interface Surroundings {
  /** The URL of the list of problems. Undefined if there is none. */
  readonly problemPages: string | undefined;
  /** Whether the app has a resource at its `/`. */
  readonly hasRoot: boolean;
}

export function pageFrame(ctx: Context, { problemPages, hasRoot }: Surroundings): PageFrame {
  const lifecycle = lifecycleOf(ctx);
  const home = homeOf(ctx);
  return {
    links: [
      ...(home === undefined ? [] : [['Home', home] as const]),
      ...(hasRoot ? [['API', '../'] as const] : []),
      ...versionLinks(ctx),
      ...(problemPages === undefined ? [] : [['Problems', problemPages] as const]),
      ['OpenAPI 3.1', '../openapi.json'],
    ],
    notice: lifecycle === undefined ? undefined : noticeOf(parseLifecycle(lifecycle), gatewayRoot(ctx)),
  };
}

/** Links to the documentation of each version that is mounted beside the current one. */
function versionLinks(ctx: Context): PageFrame['links'] {
  const { basePath, versions } = requestContext(ctx);
  const start = basePath.lastIndexOf('/') + 1;
  const current = basePath.slice(start);
  return versions.map((name) => [name, name === current ? undefined : `${basePath.slice(0, start)}${name}/docs/`]);
}

/** Says in one sentence each since when the version is deprecated, until when it works, and what replaces it. */
function noticeOf(lifecycle: ReturnType<typeof parseLifecycle>, root: string): Markup | undefined {
  const { isDeprecated, deprecatedAtMs, endsAtMs, successor } = lifecycle;
  if (!isDeprecated && endsAtMs === undefined) return undefined;
  return html`<p class="verdict" data-state="warning">${isDeprecated && deprecationText({ deprecatedAtMs })}${endsAtMs !== undefined && html`This version ends on ${dayOf(endsAtMs)}. `}${successor !== undefined && html`<a href="${successor.startsWith('/') ? root : ''}${successor}">Use its successor</a>.`}</p>
`;
}

function deprecationText({ deprecatedAtMs }: Pick<Lifecycle, 'deprecatedAtMs'>): Markup {
  return deprecatedAtMs === undefined
    ? html`This version is deprecated. `
    : html`The deprecation date of this version is ${dayOf(deprecatedAtMs)}. `;
}

function dayOf(ms: number): Markup {
  const [day = ''] = new Date(ms).toISOString().split('T');
  return html`<time datetime="${new Date(ms).toISOString()}">${day}</time>`;
}
