/** Any plain value as a page for people: no script, one style, everything escaped. */
import { createHash } from 'node:crypto';

const style = [
  ':root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}',
  'body{max-width:60rem;margin:2rem auto;padding:0 1rem}',
  'dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}',
  'dt{font-weight:600}dd{margin:0;overflow-wrap:anywhere}',
  'li{margin-bottom:.75rem}',
].join('');

/** The policy allows our own style by its digest and nothing else. */
export const htmlHeaders = contentSecurity(style);

/** Headers for a self-contained page whose only style is `css` and which has no script. `formAction`: where its forms may lead. */
export function contentSecurity(
  css: string,
  formAction: "'none'" | "'self'" = "'none'",
): Readonly<Record<string, string>> {
  const digest = createHash('sha256').update(css).digest('base64');
  const policy = `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action ${formAction}; frame-ancestors 'none'`;
  return { 'Content-Security-Policy': policy };
}

export function htmlPage(title: string, value: unknown): string {
  return htmlDocument({
    title,
    css: style,
    main: `<h1>${escapeHtml(title)}</h1>\n${render(value)}`,
  });
}

/** A whole document; `main` is markup, the rest is text. */
export function htmlDocument({ title, css, main }: { title: string; css: string; main: string }): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${css}</style>
</head>
<body>
<main>
${main}
</main>
</body>
</html>
`;
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function render(value: unknown): string {
  if (Array.isArray(value)) return `<ol>${value.map((item) => `<li>${render(item)}</li>`).join('')}</ol>`;
  if (typeof value === 'object' && value !== null) {
    const rows = Object.entries(value).map(
      ([name, member]) => `<dt>${escapeHtml(name)}</dt><dd>${render(member)}</dd>`,
    );
    return `<dl>${rows.join('')}</dl>`;
  }
  return renderScalar(String(value));
}

/** Only what is an http address or a path of this host becomes a link: never `javascript:`, never `//elsewhere`. */
function renderScalar(text: string): string {
  const escaped = escapeHtml(text);
  return /^(?:https?:\/\/|\/(?!\/))[^\s\\]*$/.test(text) ? `<a href="${escaped}">${escaped}</a>` : escaped;
}
