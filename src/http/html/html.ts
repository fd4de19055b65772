/** Generates HTML: an escaping template, the document, its style and scripts, CommonMark, and security headers. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { digestTag } from '../precondition.ts';

const markupKey = Symbol('markup');

/** Safe HTML. The key is a symbol private to this file, so parsed JSON cannot pass for it. */
export interface Markup {
  readonly [markupKey]: string;
}

/** Undefined and false render as nothing. */
type Content = Markup | string | number | undefined | false | readonly Content[];

/** A template tag: literal parts are HTML, and values are escaped unless they are markup. */
export function html(literals: TemplateStringsArray, ...values: readonly Content[]): Markup {
  return markupOf(literals.reduce((whole, literal, index) => whole + textOf(values[index - 1]) + literal));
}

export interface HtmlPage {
  /** The title of the browser window. */
  readonly title: string;
  /** @default the title */
  readonly heading?: string;
  /** URLs of CSS files in addition to the shared style. */
  readonly stylesheets?: readonly string[];
  /** URL of an ECMAScript module. */
  readonly script?: string;
  /** Shown next to the heading, in a bar above the content. @default no bar: the heading starts the content */
  readonly header?: Markup;
  /** Links to other pages, above the heading. Not with `header`. @default no links */
  readonly links?: Markup | undefined;
  readonly main: Markup;
}

const contentTypes = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' } as const;

type PageFileName = `${string}.${keyof typeof contentTypes}`;

/** A body and the headers that describe it. */
export interface TaggedBody {
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body: string;
  /** The entity tag, in quotes. */
  readonly tag: string;
}

/** `directory` is next to the calling file, both in the sources and in the build. */
export function readPageFiles(directory: URL, names: readonly PageFileName[]): ReadonlyMap<string, TaggedBody> {
  return new Map(names.map((name) => [name, readPageFile(new URL(name, directory))]));
}

/** `url` points to a local file with the extension `.css` or `.js`. */
export function readPageFile(url: URL): TaggedBody {
  const body = readFileSync(url, 'utf8');
  const contentType = contentTypes[url.pathname.endsWith('.css') ? 'css' : 'js'];
  return { contentType, body, tag: digestTag(body) };
}

/** The shared style, minified. It is inlined into every page, so that errors look the same on every host and path. */
const style = readPageFile(new URL('page.css', import.meta.url)).body.replace(/\s+|\/\*.*?\*\//gs, ' ');

/** Renders a complete page. */
export function htmlDocument({ title, heading = title, header, links, main, ...files }: HtmlPage): string {
  const { stylesheets = [], script } = files;
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="${icon}">
<style>${markupOf(style)}</style>
${stylesheets.map((url) => html`<link rel="stylesheet" href="${url}">\n`)}${script !== undefined && html`<script type="module" src="${script}"></script>\n`}</head>
<body>
${header === undefined ? plainBody(heading, links, main) : bodyWithBar(heading, header, main)}
</body>
</html>
`;
  return document[markupKey];
}

/** Renders a small subset of CommonMark: paragraphs, lists with `- `, code in backticks. */
export function blockMarkup(text: string): Markup {
  const blocks = text.split(/\n{2,}/).filter((block) => block !== '');
  return markupOf(blocks.map(blockText).join('\n'));
}

/** Renders inline text, with code in backticks. */
export function inlineMarkup(text: string): Markup {
  return markupOf(inlineText(text));
}

/**
 * The security headers of a page. By default they allow only the shared style, by its digest. `ownFiles` also allows
 * scripts, styles, connections and forms of this server, but nothing else inline.
 */
export function pageHeaders({ ownFiles = false } = {}): Readonly<Record<string, string>> {
  const policy = { 'Content-Security-Policy': [...common, ...(ownFiles ? withOwnFiles : withStyle)].join('; ') };
  return Object.freeze(ownFiles ? { ...policy, 'Referrer-Policy': 'same-origin' } : policy);
}

const digest = `'sha256-${createHash('sha256').update(style).digest('base64')}'`;
const common = ["default-src 'none'", 'img-src data:', "base-uri 'none'", "frame-ancestors 'none'"];
const withStyle = [`style-src ${digest}`, "form-action 'none'"];
const withOwnFiles = [`style-src 'self' ${digest}`, "script-src 'self'", "connect-src 'self'", "form-action 'self'"];

function markupOf(text: string): Markup {
  return { [markupKey]: text };
}

function textOf(content: Content): string {
  if (content === undefined || content === false) return '';
  if (typeof content === 'string') return escapeHtml(content);
  if (typeof content === 'number') return String(content);
  return markupKey in content ? content[markupKey] : content.map(textOf).join('');
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

const icon =
  'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 16 16%22%3E%3Crect width=%2216%22 height=%2216%22 rx=%223%22 fill=%22%231f5fbf%22/%3E%3Cpath d=%22M3 11h10M4.5 9.5a3.5 3.5 0 0 1 7 0M8 4v2%22 stroke=%22white%22 stroke-width=%221.6%22 fill=%22none%22/%3E%3C/svg%3E';

function plainBody(heading: string, links: Markup | undefined, main: Markup): Markup {
  return html`${links !== undefined && html`<header class="links">${links}</header>\n`}<main class="plain">
<h1>${heading}</h1>
${main}
</main>`;
}

function bodyWithBar(heading: string, header: Markup, main: Markup): Markup {
  return html`<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
<h1>${heading}</h1>
${header}
</header>
<main id="main" tabindex="-1">
${main}
</main>`;
}

function blockText(text: string): string {
  if (!text.startsWith('- ')) return `<p>${inlineText(text)}</p>`;
  const items = text.slice(2).split('\n- ');
  return `<ul>${items.map((item) => `<li>${inlineText(item)}</li>`).join('')}</ul>`;
}

function inlineText(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}
