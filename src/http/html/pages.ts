/** Renders values and errors as HTML pages: lists of objects as tables, objects as name-value lists, JSON one click away. */
import { type Fields, isMap } from '#foundation';
import type { ErrorBody } from '../problem.ts';
import { html, htmlDocument, inlineMarkup, type Markup } from './html.ts';
import { moneyMarkup, type Room, timeMarkup } from './values.ts';

export interface PageLink {
  readonly href: string;
  readonly text: string;
}

/** Where a page is. The links are paths, as the client sees them. */
export interface PagePlace {
  /** The pages above, outermost first. */
  readonly above: readonly PageLink[];
  /** The lists below, and the API docs. */
  readonly related: readonly PageLink[];
  /** Returns the path of the item that the value of a field identifies. Undefined for other fields. */
  readonly itemOf: (field: string, value: unknown) => string | undefined;
}

/** Renders a resource, or a page of a collection with links to its items and other pages. */
export function resourcePage(value: unknown, title: string, place?: PagePlace): string {
  const itemOf = place?.itemOf;
  return htmlDocument({
    title,
    links: linksMarkup(title, place),
    main: html`${isPage(value) ? pageMarkup(value, itemOf) : dataMarkup(value, itemOf)}
${rawJson(value)}`,
  });
}

/** The way up, and links to related pages. Undefined if there are none. */
export function linksMarkup(
  title: string,
  { above, related }: Pick<PagePlace, 'above' | 'related'> = { above: [], related: [] },
): Markup | undefined {
  const links = related.map(linkMarkup);
  if (above.length === 0) return links.length === 0 ? undefined : html`<nav aria-label="Related pages">${links}</nav>`;
  return html`<nav aria-label="Breadcrumb"><ol class="trail">${above.map((link) => html`<li>${linkMarkup(link)}</li>`)}<li aria-current="page">${title}</li></ol></nav>
${links.length > 0 && html`<nav aria-label="Related pages">${links}</nav>`}`;
}

function linkMarkup({ href, text }: PageLink): Markup {
  return html`<a href="${href}">${text}</a> `;
}

/** Details for the HTML page of an error that are not part of the error body. */
export interface ProblemNotes {
  /**
   * The `type` of RFC 9457: the problem page as a path, or as a URL if PUBLIC_URL is set. Clients compare it as text, so
   * it does not depend on `Host` (sections 3.1.1 and 4.2). Undefined if the problem has no page.
   */
  readonly type: string | undefined;
  readonly title: string;
  /** Undefined, like the remedy, if another party chose the status: the text in the table would not fit. */
  readonly meaning: string | undefined;
  readonly remedy: string | undefined;
  readonly requestId: string;
}

/** What happened, what to do, and the request id to report. */
export function problemPage(body: ErrorBody, { meaning, remedy, requestId }: ProblemNotes, place?: PagePlace): string {
  const { code: _code, message, info_url: infoUrl, detail, errors = [], ...extension } = body;
  const further = Object.entries(extension);
  const main = html`<p class="lead">${meaning !== undefined && inlineMarkup(meaning)}</p>
${detail !== undefined && detail !== meaning && html`<p class="verdict">${detail}</p>`}
${errors.length > 0 && dataMarkup(errors)}
${further.length > 0 && fields(further)}
${remedy !== undefined && html`<h2>What to do</h2>\n<p>${inlineMarkup(remedy)}</p>`}
<p class="hint">Request <code>${requestId}</code>${infoUrl !== undefined && html` · <a href="${infoUrl}">About this problem</a>`}</p>
${rawJson(body)}`;
  return htmlDocument({ title: message, links: linksMarkup(message, place), main });
}

/** `itemOf` is for the fields of the value itself, not for those inside of them. */
type ItemOf = PagePlace['itemOf'];

const noItem: ItemOf = () => undefined;

/** Renders any plain value. */
export function dataMarkup(value: unknown, itemOf = noItem): Markup {
  if (Array.isArray(value))
    return value.length > 0 && value.every(isMap)
      ? table(value, { hrefOfRow: urlOf })
      : list(value, (one) => dataMarkup(one));
  return isMap(value) ? fields(Object.entries(value), itemOf) : scalar(value, 'ample');
}

function fields(entries: readonly (readonly [name: string, value: unknown])[], itemOf = noItem): Markup {
  return html`<dl class="fields">${entries.map(([name, value]) => html`<div><dt>${name}</dt><dd>${fieldMarkup(value, itemOf(name, value))}</dd></div>\n`)}</dl>`;
}

function fieldMarkup(value: unknown, href: string | undefined): Markup {
  if (href !== undefined) return html`<a href="${href}">${compact(value)}</a>`;
  return moneyMarkup(value, 'ample') ?? (isPair(value) ? compact(value) : dataMarkup(value));
}

/** The value as JSON, collapsed. */
export function rawJson(value: unknown): Markup {
  return html`<details class="raw"><summary>JSON</summary><pre><code>${JSON.stringify(value, undefined, 2)}</code></pre></details>`;
}

/** One page of a collection, as `#rest` returns it. */
interface Page extends Fields {
  readonly items: readonly unknown[];
  readonly links: Fields;
}

function isPage(value: unknown): value is Page {
  return isMap(value) && Array.isArray(value['items']) && isMap(value['links']);
}

/** The path of the collection with a trailing slash, which the address in the browser may lack. */
function pathOf({ links }: Page): string {
  return String(links['self']).replace(/\/?(?:\?.*)?$/s, '/');
}

const otherPages = { first: 'First', prev: 'Previous', next: 'Next', last: 'Last' };

function pageMarkup(page: Page, itemOf?: ItemOf): Markup {
  const { items, links, offset, total } = page;
  const path = pathOf(page);
  const hrefOfRow = (row: Fields) =>
    urlOf(row) ?? ('id' in row ? hrefOf(path + encodeURIComponent(String(row['id']))) : undefined);
  const others = Object.entries(otherPages).filter(([name]) => name in links && links[name] !== links['self']);
  return html`<p class="hint">${countOf(items.length, offset, total)}</p>
${items.length > 0 && (items.every(isMap) ? table(items, { hrefOfRow, itemOf }) : dataMarkup(items))}
${others.length > 0 && html`<nav class="pages" aria-label="Pages">${others.map(([name, text]) => html`<a rel="${name}" href="${hrefOf(links[name])}">${text}</a>`)}</nav>`}`;
}

/** `1 to 20 of 34`. A page after a cursor has no offset, and a list may have no total. */
function countOf(count: number, offset: unknown, total: unknown): string {
  if (count === 0) return total === 0 ? 'There are none.' : 'There are none here.';
  const range = typeof offset === 'number' ? `${offset + 1} to ${offset + count}` : String(count);
  return typeof total === 'number' ? `${range} of ${total}` : range;
}

function urlOf({ url }: Fields): string | undefined {
  return hrefOf(url);
}

interface TableLinks {
  /** Returns the link for the first cell of a row. */
  readonly hrefOfRow: (row: Fields) => string | undefined;
  readonly itemOf?: ItemOf | undefined;
}

function table(rows: readonly Fields[], { hrefOfRow, itemOf = noItem }: TableLinks): Markup {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const areLinked = names.some((name) => name !== 'url') && rows.every((row) => hrefOfRow(row) !== undefined);
  const columns = areLinked ? names.filter((name) => name !== 'url') : names;
  const [first = ''] = columns;
  const firstCell = (row: Fields) =>
    areLinked ? html`<a href="${hrefOfRow(row)}">${compact(row[first])}</a>` : compact(row[first]);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>
<thead><tr>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>
${rows.map((row) => html`<tr><th scope="row">${firstCell(row)}</th>${columns.slice(1).map((name) => html`${cell(name, row, itemOf)}`)}</tr>\n`)}</tbody>
</table></div>`;
}

/** Keeps short values, such as dates and amounts, on one line. */
function cell(name: string, row: Fields, itemOf: ItemOf): Markup {
  const value = row[name];
  const isShort = JSON.stringify(value ?? '').length <= shortMax;
  const href = itemOf(name, value);
  const shown = href === undefined ? compact(value) : html`<a href="${href}">${compact(value)}</a>`;
  return html`<td${isShort && html` class="short"`} data-label="${name}">${name in row && shown}</td>`;
}

const shortMax = 34;

/** Renders a value on one line, for a table cell. A pair, such as an amount and its currency, needs no names. */
function compact(value: unknown): Markup {
  if (Array.isArray(value)) return list(value, compact);
  if (!isMap(value)) return scalar(value, 'short');
  const money = moneyMarkup(value, 'short');
  if (money !== undefined) return money;
  const members = Object.entries(value);
  return isPair(value)
    ? html`${members.map(([, member], index) => html`${index > 0 && ' '}${scalar(member, 'short')}`)}`
    : html`${members.map(([name, member]) => html`<span class="pair"><span class="key">${name}</span> ${compact(member)}</span> `)}`;
}

function isPair(value: unknown): boolean {
  const members = isMap(value) ? Object.values(value) : [];
  return members.length === 2 && members.every((member) => typeof member !== 'object');
}

function list(values: readonly unknown[], markup: (value: unknown) => Markup): Markup {
  return values.length === 0
    ? html`<span class="minor">none</span>`
    : html`<ul class="bare">${values.map((value) => html`<li>${markup(value)}</li>`)}</ul>`;
}

function scalar(value: unknown, room: Room): Markup {
  const href = hrefOf(value);
  if (href !== undefined) return html`<a href="${href}">${href}</a>`;
  if (typeof value !== 'string') return html`${String(value)}`;
  if (room === 'short' && uuid.test(value)) return html`<span class="uuid" title="${value}">${value}</span>`;
  return timeMarkup(value, room) ?? html`${value}`;
}

const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Links only to http URLs and paths on this host, never to `javascript:` or `//elsewhere`. */
function hrefOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^(?:https?:\/\/|\/(?!\/))[^\s\\]*$/.test(value) ? value : undefined;
}
