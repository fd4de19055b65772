/** The one way of writing HTML: an escaping template, a whole document, any value or prose as markup, and security headers. */
import { createHash } from 'node:crypto';

const markupKey = Symbol('markup');

/** HTML that is finished. Only this file makes it: the key is a symbol of its own, so nothing that was read as JSON passes for it. */
export interface Markup {
  readonly [markupKey]: string;
}

/** Undefined and false are written as nothing. */
type Content = Markup | string | number | undefined | false | readonly Content[];

/** A template whose literal parts are HTML, and whose values are escaped unless they are markup. */
export function html(literals: TemplateStringsArray, ...values: readonly Content[]): Markup {
  return markupOf(literals.reduce((whole, literal, index) => whole + textOf(values[index - 1]) + literal));
}

export interface HtmlPage {
  /** Of the window. */
  readonly title: string;
  /** @default the title */
  readonly heading?: string;
  /** CSS, written into the page. */
  readonly style?: string;
  /** URLs of CSS files. */
  readonly stylesheets?: readonly string[];
  /** URL of an ECMAScript module. */
  readonly script?: string;
  /** Beside the heading, in a bar above the content. @default no bar: the heading is the first of the content */
  readonly header?: Markup;
  readonly main: Markup;
}

/** A whole page. */
export function htmlDocument({ title, heading = title, style, header, main, ...files }: HtmlPage): string {
  const { stylesheets = [], script } = files;
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
${header !== undefined && html`<link rel="icon" href="${icon}">\n`}${style !== undefined && html`<style>${markupOf(style)}</style>\n`}${stylesheets.map(stylesheetLink)}${script !== undefined && html`<script type="module" src="${script}"></script>\n`}</head>
<body>
${header === undefined ? plainBody(heading, main) : bodyWithBar(heading, header, main)}
</body>
</html>
`;
  return document[markupKey];
}

/** Any plain value: objects as `<dl>`, arrays as `<ol>`, URLs as links. */
export function dataMarkup(value: unknown): Markup {
  return markupOf(dataText(value));
}

/** A text in the little of CommonMark that ours use: paragraphs, lists of `- `, code in backticks. */
export function proseMarkup(text: string): Markup {
  const blocks = text.split(/\n{2,}/).filter((block) => block !== '');
  return markupOf(blocks.map(blockText).join('\n'));
}

/** A text without paragraphs, for the middle of a line: code in backticks. */
export function phraseMarkup(text: string): Markup {
  return markupOf(phraseText(text));
}

/**
 * The security headers of a page. With a `style`: that style, allowed by its digest, and nothing else. With `ownFiles`:
 * scripts, styles, connections and forms of this server, and nothing inline.
 */
export function pageHeaders(
  page: { readonly style: string } | { readonly ownFiles: true },
): Readonly<Record<string, string>> {
  if ('style' in page) return Object.freeze({ 'Content-Security-Policy': policyOfStyle(page.style) });
  return Object.freeze({ 'Content-Security-Policy': policyOfOwnFiles, 'Referrer-Policy': 'same-origin' });
}

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

function stylesheetLink(url: string): Markup {
  return html`<link rel="stylesheet" href="${url}">\n`;
}

function plainBody(heading: string, main: Markup): Markup {
  return html`<main>
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

function dataText(value: unknown): string {
  if (Array.isArray(value)) return `<ol>${value.map((item) => `<li>${dataText(item)}</li>`).join('')}</ol>`;
  if (typeof value !== 'object' || value === null) return scalarText(String(value));
  const rows = Object.entries(value).map(
    ([name, member]) => `<dt>${escapeHtml(name)}</dt><dd>${dataText(member)}</dd>`,
  );
  return `<dl>${rows.join('')}</dl>`;
}

/** Only an http URL or a path of this host becomes a link: never `javascript:`, never `//elsewhere`. */
function scalarText(text: string): string {
  const escaped = escapeHtml(text);
  return /^(?:https?:\/\/|\/(?!\/))[^\s\\]*$/.test(text) ? `<a href="${escaped}">${escaped}</a>` : escaped;
}

function blockText(text: string): string {
  if (!text.startsWith('- ')) return `<p>${phraseText(text)}</p>`;
  const items = text.slice(2).split('\n- ');
  return `<ul>${items.map((item) => `<li>${phraseText(item)}</li>`).join('')}</ul>`;
}

function phraseText(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}

function policyOfStyle(css: string): string {
  const digest = createHash('sha256').update(css).digest('base64');
  return `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

const policyOfOwnFiles = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", 'img-src data:'],
  ...["form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"],
].join('; ');
