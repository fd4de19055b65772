/** The pages about problems: they say what each problem means and what to do about it. */
import type { Context } from 'koa';
import { problem, reasonOf } from '../problem.ts';
import { type ProblemTable, problemTitle } from '../problems.ts';
import { createRepresentations, type Formatter, withHtmlPage } from '../representations.ts';
import { acceptRead, represent } from '../respond.ts';
import { html, htmlDocument, inlineMarkup, type Markup } from './html.ts';
import { linksMarkup, type PageLink, rawJson } from './pages.ts';

/**
 * Creates a function that responds with the page of the problem with the slug or, if that is empty, with the list of
 * problems, which links to the pages below it. Throws `not-found` for another slug. The pages are the same for every
 * request. `listed` are the slugs in the list, by default all in the order of the table. `links` are relative to the
 * list.
 */
export function createShowProblem(
  table: ProblemTable,
  { listed = Object.keys(table), links = {} }: ShowProblemOptions = {},
) {
  const representations = createRepresentations(createFormatters(links).map(cached));
  const pages = new Map(
    Object.entries(table).map(([slug, kind]): [string, ProblemPage] => {
      const { status, meaning, remedy } = kind;
      return [slug, { problem: slug, title: problemTitle(slug, kind), status, meaning, remedy }];
    }),
  );
  const index: ProblemIndex = { problems: listed.flatMap((slug) => pages.get(slug) ?? []) };
  return function showProblem(ctx: Context, slug: string): void {
    const page = slug === '' ? index : pages.get(slug);
    if (page === undefined) throw problem('not-found');
    if (!acceptRead(ctx, ctx.path)) return;
    const title = 'title' in page ? page.title : 'Problems';
    represent(ctx, representations.choose(ctx.req.headers.accept), page, { title });
  };
}

interface ShowProblemOptions {
  readonly listed?: readonly string[];
  readonly links?: ProblemPageLinks;
}

interface ProblemPageLinks {
  /** The pages above the list, outermost first. @default none */
  readonly above?: readonly PageLink[];
  /** @default none */
  readonly related?: readonly PageLink[];
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
  readonly problems: readonly ProblemPage[];
}

/** Formatters for a `ProblemPage` and for the `ProblemIndex`. */
function createFormatters({ above = [], related = [] }: ProblemPageLinks): readonly Formatter[] {
  return withHtmlPage((value, title) => {
    const shown = value as ProblemPage | ProblemIndex;
    const isList = 'problems' in shown;
    return htmlDocument({
      title,
      links: linksMarkup(title, { above: isList ? above : [...above, { href: './', text: 'Problems' }], related }),
      main: html`${isList ? listOf(shown) : detailsOf(shown)}\n${rawJson(shown)}`,
    });
  });
}

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
