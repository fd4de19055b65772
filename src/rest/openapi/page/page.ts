/** Renders an OpenAPI document as an HTML page that is complete without JavaScript. */
import { blockMarkup, html, htmlDocument, inlineMarkup, type Markup, pageHeaders } from '#http';
import type { ApiInfo, OpenApiDocument } from '../document.ts';
import { operationSection } from './operation-section.ts';
import type { PageComponents, PageContext, PageOperation } from './page-document.ts';

export const documentPageHeaders = pageHeaders({ ownFiles: true });

export interface DocumentPageOptions {
  readonly info: Pick<ApiInfo, 'exampleCredentials'>;
  /** The URL of the problem pages, if there are any. */
  readonly problemPages: string | undefined;
}

/** The parts of the page that depend on the request. */
export interface PageFrame {
  /** Links to other pages: text and URL. The current page has no URL. */
  readonly links: readonly (readonly [text: string, url: string | undefined])[];
  /** Says that the version is deprecated or will end. */
  readonly notice: Markup | undefined;
}

/** Renders the operations once. The result adds the parts that depend on the request. */
export function createDocumentPage(
  document: OpenApiDocument,
  { info: { exampleCredentials = 'user:password' }, problemPages }: DocumentPageOptions,
): (frame: PageFrame) => string {
  const { info, servers = [], security = [], tags = [], components } = document;
  const { schemas = {}, responses = {} } = components as Partial<PageComponents>;
  const credentials = security.length > 0 ? exampleCredentials : undefined;
  const context: PageContext = { schemas, responses, server: servers[0]?.url ?? '', credentials, problemPages };
  const operations = operationsOf(document);
  const groups = tags.map(({ name, description }) => ({
    name,
    description,
    operations: operations.filter((operation) => operation.tags.includes(name)),
  }));
  const contents = html`<nav aria-label="Operations">${groups.map(groupLinks)}</nav>`;
  const sections = html`${groups.map((group) => groupSection(group, context))}`;
  const intro = introduction(document, context);
  return ({ links, notice }) =>
    htmlDocument({
      title: info.title,
      stylesheets: ['docs.css'],
      script: 'docs.js',
      header: html`<span class="chip">Version ${info.version}</span>${pageLinks(links)}`,
      main: html`<div class="docs">${contents}
<div>${notice}${intro}
${sections}</div></div>`,
    });
}

function introduction({ info }: OpenApiDocument, { server, credentials }: PageContext): Markup {
  return html`${blockMarkup(info.description ?? '')}
<p>The base URL is <code>${server}</code>.</p>
${
  credentials !== undefined &&
  html`<p>Every request needs credentials in the scheme Basic. The examples use <code>${credentials}</code>.</p>
<details class="part try" hidden><summary>Try it as another user</summary>
<form id="credentials">
<p>Requests from this page have the credentials that the browser knows, unless you enter others here.</p>
<label>User <input name="user" autocomplete="off"></label>
<label>Password <input name="password" type="password" autocomplete="off"></label>
</form></details>`
}`;
}

function pageLinks(links: PageFrame['links']): Markup {
  const items = links.map(([text, url]) =>
    url === undefined ? html`<a aria-current="page">${text}</a>` : html`<a href="${url}">${text}</a>`,
  );
  return html`<nav aria-label="Pages">${items}</nav>`;
}

interface Group {
  readonly name: string;
  readonly description: string | undefined;
  readonly operations: readonly PageOperation[];
}

function operationsOf({ paths = {} }: OpenApiDocument): readonly PageOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item as Readonly<Record<string, object>>).map(
      ([method, operation]) =>
        ({ parameters: [], ...operation, method: method.toUpperCase(), path }) as unknown as PageOperation,
    ),
  );
}

function groupLinks({ name, operations }: Group): Markup {
  const links = operations.map(
    ({ operationId, method, summary }) =>
      html`<li><a href="#${operationId}"><b class="method" data-method="${method}">${method}</b> ${inlineMarkup(summary)}</a></li>\n`,
  );
  return html`<b>${name}</b>\n<ul class="bare">${links}</ul>\n`;
}

function groupSection({ name, description, operations }: Group, context: PageContext): Markup {
  return html`<h2>${name}</h2>
${description !== undefined && blockMarkup(description)}
${operations.map((operation) => operationSection(operation, context))}`;
}
