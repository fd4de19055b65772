/** A document as a page for people: no script, nothing from elsewhere. */
import { contentSecurity, escapeHtml, htmlDocument } from '#http';
import type { OpenApiDocument } from './document.ts';
import { operationSection, type PageComponents, type PageOperation } from './page-operation.ts';
import { fieldsOf, type Schema } from './page-schema.ts';
import { code, phrase, prose } from './page-text.ts';

const css = [
  ':root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif;background:Canvas;color:CanvasText}',
  'body{max-width:60rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}',
  'section section,details{border-top:1px solid color-mix(in srgb,currentColor 20%,transparent);margin-top:1.5rem}',
  'nav ul{columns:16rem;padding-left:1rem}',
  'dl{margin:.5rem 0}dt{margin-top:.5rem}dd{margin:0 0 0 1.25rem}dd p,dd ul{margin:0}',
  'code,pre{font:.9em ui-monospace,monospace}',
  'pre{white-space:pre-wrap;padding:.75rem;background:color-mix(in srgb,currentColor 8%,transparent)}',
  'summary{font-weight:600;padding:.5rem 0}',
].join('');

export const pageHeaders = contentSecurity(css);

export function documentPage(document: OpenApiDocument): string {
  const { info, servers = [], security = [], tags = [], components } = document;
  const { schemas = {}, responses = {} } = components as Partial<PageComponents>;
  const around = { components: { schemas, responses }, server: servers[0]?.url ?? '', signedIn: security.length > 0 };
  const operations = operationsOf(document);
  const names = tags.map(({ name }) => name);
  const under = (tag: string) => operations.filter((operation) => operation.tags.includes(tag));
  const main = [
    `<h1>${escapeHtml(info.title)}</h1>`,
    `<p>Version ${escapeHtml(info.version)}, at ${code(around.server)}. For programs: <a href="../openapi.json">OpenAPI 3.1</a>.</p>`,
    prose(info.description ?? ''),
    '<p>The examples can be tried as they stand where the demo runs.</p>',
    `<nav aria-labelledby="contents"><h2 id="contents">Contents</h2>\n${names.map((tag) => contents(tag, under(tag))).join('\n')}</nav>`,
    ...names.map((tag) => {
      const sections = under(tag).map((operation) => operationSection(operation, around));
      return `<section><h2>${escapeHtml(tag)}</h2>\n${sections.join('\n')}</section>`;
    }),
    `<section><h2>Schemas</h2>\n${Object.entries(schemas).map(schemaDetails).join('\n')}</section>`,
  ];
  return htmlDocument({ title: info.title, css, main: main.join('\n') });
}

function operationsOf({ paths = {} }: OpenApiDocument): readonly PageOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item as Readonly<Record<string, object>>).map(
      ([method, operation]) =>
        ({ parameters: [], ...operation, method: method.toUpperCase(), path }) as unknown as PageOperation,
    ),
  );
}

function contents(tag: string, operations: readonly PageOperation[]): string {
  const links = operations.map(
    ({ operationId, summary }) => `<li><a href="#${escapeHtml(operationId)}">${phrase(summary)}</a></li>`,
  );
  return `<h3>${escapeHtml(tag)}</h3>\n<ul>${links.join('\n')}</ul>`;
}

function schemaDetails([name, schema]: readonly [string, Schema]): string {
  const { description = '', additionalProperties } = schema;
  const closed = additionalProperties === false ? '<p>Other fields are refused.</p>' : '';
  // A link opens what is folded around its target.
  return `<details><summary>${escapeHtml(name)}</summary><div id="schema-${escapeHtml(name)}">
${prose(description)}${closed}${fieldsOf(schema)}</div></details>`;
}
