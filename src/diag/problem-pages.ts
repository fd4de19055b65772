/** What each problem means and what to do about it: the pages that `info_url` of an error points to. */
import {
  createRepresentations,
  type Formatter,
  isRead,
  type ProblemKind,
  type ProblemSlug,
  problem,
  problems,
  problemTitle,
  redirectTo,
  represent,
  requestContext,
} from '#http';
import { type Endpoint, root } from './diag-app.ts';
import { type ProblemIndex, type ProblemPage, problemPageFormatters } from './problem-page.ts';

const prefix = `${root}/problems`;

/** Of the list of all; below it each page is named as its problem. */
export const problemPagesPath = `${prefix}/`;

/** `/gateway/v0/problems/` and `/gateway/v0/problems/not-found`, open to everybody. They say the same to every request. */
export function createProblemPages(): Endpoint {
  const representations = createRepresentations(problemPageFormatters.map(remembering));
  const pages = Object.entries(problems).map(([slug, kind]) => pageOf(slug as ProblemSlug, kind));
  const index: ProblemIndex = { problems: pages };
  const byPath = new Map<string, ProblemPage | ProblemIndex>([
    [problemPagesPath, index],
    ...pages.map((page) => [problemPagesPath + page.problem, page] as const),
  ]);
  return {
    name: 'problems',
    prefix,
    rewrite: '',
    authenticated: false,
    async run(ctx) {
      if (ctx.path === prefix)
        return redirectTo(ctx, `${requestContext(ctx).basePath}${problemPagesPath}${ctx.search}`);
      const page = byPath.get(ctx.path);
      if (page === undefined) throw problem('not-found');
      if (!isRead(ctx, ctx.path)) return;
      const title = 'title' in page ? page.title : 'Problems';
      represent(ctx, representations.choose(ctx.req.headers.accept), page, { title });
    },
  };
}

function pageOf(slug: ProblemSlug, { status, meaning, remedy }: ProblemKind): ProblemPage {
  return { problem: slug, title: problemTitle(slug), status, meaning, remedy };
}

/** Nobody needs credentials here, so nobody may have a page put together twice. */
function remembering(formatter: Formatter): Formatter {
  const made = new WeakMap<object, string>();
  return {
    ...formatter,
    format(value, title) {
      const page = Object(value);
      const text = made.get(page) ?? formatter.format(page, title);
      made.set(page, text);
      return text;
    },
  };
}
