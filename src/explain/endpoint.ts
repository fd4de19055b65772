/** The endpoint `/gateway/v0/explain`, which responds with an explanation as JSON, as YAML or as a page with a form. */
import type { InternalRoute } from '#gateway';
import {
  acceptRead,
  createRepresentations,
  type Fault,
  html,
  htmlDocument,
  longQueryFault,
  type Markup,
  type PagePlace,
  pageHeaders,
  problem,
  queryFault,
  represent,
  withHtmlPage,
} from '#http';
import type { Explain } from './explain.ts';
import type { ExplainRequest, Explanation } from './explanation.ts';
import { explanationSections, verdictOf } from './sections.ts';
import { faultsOfRequest } from './synthetic-request.ts';

const path = '/gateway/v0/explain';

/**
 * Reads the request from a query such as `?method=GET&url=/v1/orders&user=ann`. Without one, a browser gets the form.
 */
export function createExplainEndpoint(explain: Explain): InternalRoute {
  const representations = createRepresentations(
    withHtmlPage(
      (value, title, _notes, place) => formatPage(value as Page, title, place),
      pageHeaders({ ownFiles: true }),
    ),
  );
  return {
    name: 'explain',
    prefix: path,
    forAdmins: true,
    async run(ctx) {
      if (!acceptRead(ctx, path)) return;
      const { search } = ctx;
      const request = search === '' ? undefined : readRequest(search);
      const formatter = representations.choose(ctx.req.headers.accept);
      const isPage = formatter.type === 'text/html';
      const explanation = isPage && request === undefined ? undefined : await explain(request ?? readRequest(search));
      ctx.set('Cache-Control', 'no-store');
      represent(ctx, formatter, isPage ? { search, explanation } : explanation, { title: 'Explain a request' });
    },
  };
}

const searchLengthMax = 8192;
const headersMax = 64;

const names = ['method', 'url', 'header', 'user', 'from', 'all'] as const;

/** Ignores empty arguments. Throws `bad-argument` with all faults. */
function readRequest(search: string): ExplainRequest {
  if (search.length > searchLengthMax) throw problem('bad-argument', { errors: [longQueryFault(searchLengthMax)] });
  const given = [...new URLSearchParams(search)].filter(([, value]) => value.trim() !== '');
  const argument = (name: (typeof names)[number]) => given.find(([one]) => one === name)?.[1];
  const request: ExplainRequest = {
    method: argument('method') ?? 'GET',
    url: argument('url') ?? '/',
    headers: given.filter(([name]) => name === 'header').map(([, line]) => parseHeader(line)),
    user: argument('user'),
    remoteAddress: argument('from'),
    all: argument('all') === 'true',
  };
  const faults = [...argumentFaults(given), ...faultsOfRequest(request)];
  if (faults.length > 0) throw problem('bad-argument', { errors: faults });
  return request;
}

/** Parses `Name: value`. A line without a colon becomes an invalid name, which validation then reports. */
export function parseHeader(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(':');
  return colon < 0 ? [`${line} `, ''] : [line.slice(0, colon), line.slice(colon + 1).trim()];
}

function argumentFaults(given: readonly (readonly [string, string])[]): readonly Fault[] {
  const known: readonly string[] = names;
  const counts = new Map<string, number>();
  for (const [name] of given) counts.set(name, (counts.get(name) ?? 0) + 1);
  const faults = [...counts].flatMap(([name, count]) => {
    if (!known.includes(name)) return [queryFault(name, `is not an argument here; known: ${names.join(', ')}`)];
    if (name === 'header') return count > headersMax ? [queryFault(name, `occurs more than ${headersMax} times`)] : [];
    return count > 1 ? [queryFault(name, 'is given more than once')] : [];
  });
  const all = given.find(([name]) => name === 'all')?.[1] ?? 'false';
  return [
    ...faults,
    ...(counts.has('url') ? [] : [queryFault('url', 'is missing')]),
    ...(all === 'true' || all === 'false' ? [] : [queryFault('all', 'must be true or false')]),
  ];
}

/** The state of the form. `explanation` is undefined until the form is submitted. */
interface Page {
  readonly search: string;
  readonly explanation: Explanation | undefined;
}

function formatPage({ search, explanation }: Page, title: string, place: PagePlace | undefined): string {
  return htmlDocument({
    title,
    stylesheets: ['diag/explain.css'],
    header: html`<nav aria-label="Related pages">${place?.above.map(({ href, text }) => html`<a href="${href}">${text}</a>`)}<a href="diag/">Diagnostics</a></nav>`,
    main: html`<p class="hint">Shows how the gateway would handle a request, without sending it.</p>
${explainForm('explain', withoutCredentials(search, explanation))}${explanation !== undefined && formatResult(explanation)}`,
  });
}

function formatResult(explanation: Explanation): Markup {
  return html`<p class="verdict"${explanation.outcome.kind === 'refused' && html` data-state="warning"`}>${verdictOf(explanation)}</p>
${explanationSections(explanation).map(
  ({ heading, rows }) => html`<section><h2>${heading}</h2>
<table>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</table></section>
`,
)}`;
}

/** `action`: the URL of the endpoint, relative to the page. `given`: the values of the fields. */
export function explainForm(action: string, given: URLSearchParams = new URLSearchParams()): Markup {
  const headers = given.getAll('header').filter((line) => line !== '');
  const from = given.get('from') ?? '';
  return html`<form class="explain" method="get" action="${action}">
${field('Method', 'method', given.get('method') ?? 'GET', 'GET', 'short')}
${field('Path or URL', 'url', given.get('url') ?? '', '/v1/orders?city=Paris', 'wide')}
${field('User', 'user', given.get('user') ?? '', 'none')}
<button>Explain</button>
<details${(from !== '' || headers.length > 0) && html` open`}><summary>Address and headers</summary>
<p class="hint">Headers become part of the address of the next page: name a user instead of credentials.</p>
<div class="explain">${field('From address', 'from', from, '127.0.0.1')}
${[...headers, '', ''].map((value, index) => field(`Header ${index + 1}`, 'header', value, 'Name: value'))}</div>
</details>
</form>`;
}

function nameIn(line: string): string {
  const [name] = parseHeader(line);
  return name.trim().toLowerCase();
}

/** Returns the values of the form, without those that the explanation does not show either. */
function withoutCredentials(search: string, explanation: Explanation | undefined): URLSearchParams {
  const values = new URLSearchParams(search);
  if (explanation === undefined) return values;
  const { url, credential_headers: credentials } = explanation.request;
  // A key that the gateway does not accept may be that of a service.
  const concealed = [...credentials, 'x-api-key'];
  const lines = values.getAll('header').filter((line) => !concealed.includes(nameIn(line)));
  values.delete('header');
  for (const line of lines) values.append('header', line);
  if (values.has('url')) values.set('url', url);
  return values;
}

function field(label: string, name: string, value: string, example: string, look?: string): Markup {
  return html`<label${look && html` class="${look}"`}>${label}<input name="${name}" value="${value}" placeholder="${example}" autocomplete="off" autocapitalize="off" spellcheck="false"></label>`;
}
