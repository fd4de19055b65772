/** The pages that the `info_url` of an error links to: they say what a problem means and what to do about it. */
import type { InternalRoute } from '#gateway';
import {
  acceptRead,
  createRepresentations,
  type Formatter,
  html,
  htmlDocument,
  inlineMarkup,
  type Markup,
  type ProblemTable,
  problem,
  problemTitle,
  rawJson,
  reasonOf,
  redirectTo,
  represent,
  requestContext,
  withHtmlPage,
} from '#http';

const prefix = '/gateway/v0/problems';

/**
 * The path of the list of all problems. The page of a problem is below it, such as `/gateway/v0/problems/not-found`.
 */
export const problemPagesPath = `${prefix}/`;

/** `table` is in the order of the list. The pages need no credentials, and are the same for every request. */
export function createProblemPages(table: ProblemTable): InternalRoute {
  const representations = createRepresentations(problemPageFormatters.map(cached));
  const pages = Object.entries(table).map(([slug, kind]): ProblemPage => {
    const { status, meaning, remedy } = kind;
    return { problem: slug, title: problemTitle(slug, kind), status, meaning, remedy };
  });
  const index: ProblemIndex = { problems: pages };
  const byPath = new Map<string, ProblemPage | ProblemIndex>([
    [problemPagesPath, index],
    ...pages.map((page) => [problemPagesPath + page.problem, page] as const),
  ]);
  return {
    name: 'problems',
    prefix,
    forAdmins: false,
    async run(ctx) {
      if (ctx.path === prefix)
        return redirectTo(ctx, `${requestContext(ctx).basePath}${problemPagesPath}${ctx.search}`);
      const page = byPath.get(ctx.path);
      if (page === undefined) throw problem('not-found');
      if (!acceptRead(ctx, ctx.path)) return;
      const title = 'title' in page ? page.title : 'Problems';
      represent(ctx, representations.choose(ctx.req.headers.accept), page, { title });
    },
  };
}

/** Formats each page only once: the pages are public, so clients could cause a lot of work. */
function cached(formatter: Formatter): Formatter {
  const texts = new WeakMap<object, string>();
  return {
    ...formatter,
    format(value, title) {
      const page = Object(value);
      const text = texts.get(page) ?? formatter.format(page, title);
      texts.set(page, text);
      return text;
    },
  };
}

interface ProblemPage {
  /** The name that appears in its path and in the log, such as `not-found`. */
  readonly problem: string;
  readonly title: string;
  readonly status: number;
  readonly meaning: string;
  readonly remedy: string;
}

interface ProblemIndex {
  /** Ordered by status. */
  readonly problems: readonly ProblemPage[];
}

/** Formatters for a `ProblemPage` and for the `ProblemIndex`. */
const problemPageFormatters: readonly Formatter[] = withHtmlPage((value, title) => {
  const shown = value as ProblemPage | ProblemIndex;
  return htmlDocument({
    title,
    main: html`${'problems' in shown ? listOf(shown) : detailsOf(shown)}\n${rawJson(shown)}`,
  });
});

function detailsOf({ problem, status, meaning, remedy }: ProblemPage): Markup {
  return html`<p class="lead">${inlineMarkup(meaning)}</p>
<h2>What to do</h2>
<p>${inlineMarkup(remedy)}</p>
<p class="hint">Status ${status} ${reasonOf(status)} · <code>${problem}</code> · <a href="./">All problems</a></p>`;
}

function listOf({ problems }: ProblemIndex): Markup {
  const rows = problems.map(
    ({ problem, title, status, meaning }) =>
      html`<tr><th scope="row"><a href="${problem}">${title}</a></th><td data-label="Status">${status}</td><td>${inlineMarkup(meaning)}</td></tr>\n`,
  );
  return html`<p class="lead">The errors of this server and what they mean. The page of each error says what to do about it.</p>
<table>
<thead><tr><th scope="col">Problem</th><th scope="col">Status</th><th scope="col">Meaning</th></tr></thead>
<tbody>
${rows}</tbody>
</table>`;
}
