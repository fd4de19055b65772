/** What the gateway's own pages have in common: one look, and a policy by which nothing comes from elsewhere. */
import { html, type Markup } from './page-markup.ts';

export interface PageParts {
  /** Of the window. */
  readonly title: string;
  readonly heading: string;
  /** Where the files of the page lie, relative to it: `diag/`, or nothing for beside it. */
  readonly files: string;
  /** File names of style sheets and of the script. */
  readonly styles: readonly string[];
  readonly script?: string;
  /** Beside the heading. */
  readonly beside: Markup;
  readonly main: Markup;
}

/** Scripts, styles and connections of this very server, and nothing inline. */
export const pageHeaders = Object.freeze({
  'Content-Security-Policy': [
    ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", 'img-src data:'],
    ...["form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"],
  ].join('; '),
  'Referrer-Policy': 'same-origin',
});

const icon =
  'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 16 16%22%3E%3Crect width=%2216%22 height=%2216%22 rx=%223%22 fill=%22%231f5fbf%22/%3E%3Cpath d=%22M3 11h10M4.5 9.5a3.5 3.5 0 0 1 7 0M8 4v2%22 stroke=%22white%22 stroke-width=%221.6%22 fill=%22none%22/%3E%3C/svg%3E';

export function pageDocument({ title, heading, files, styles, script, beside, main }: PageParts): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="${icon}">
${styles.map((name) => html`<link rel="stylesheet" href="${files}${name}">\n`)}${script !== undefined && html`<script type="module" src="${files}${script}"></script>`}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
<h1>${heading}</h1>
${beside}
</header>
<main id="main" tabindex="-1">
${main}
</main>
</body>
</html>
`.markup;
}
