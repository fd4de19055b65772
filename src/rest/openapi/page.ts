/** The document as a page for people, with a curl command for each operation: no script, nothing loaded from elsewhere. */
import { html, htmlDocument, type Markup, pageHeaders, phraseMarkup, proseMarkup } from '#http';
import type { OpenApiDocument } from './document.ts';

const style = [
  ':root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif;background:Canvas;color:CanvasText}',
  'body{max-width:60rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}',
  'section section,details{border-top:1px solid color-mix(in srgb,currentColor 20%,transparent);margin-top:1.5rem}',
  'nav ul{columns:16rem;padding-left:1rem}',
  'dl{margin:.5rem 0}dt{margin-top:.5rem}dd{margin:0 0 0 1.25rem}dd p,dd ul{margin:0}',
  'code,pre{font:.9em ui-monospace,monospace}',
  'pre{white-space:pre-wrap;padding:.75rem;background:color-mix(in srgb,currentColor 8%,transparent)}',
  'summary{font-weight:600;padding:.5rem 0}',
].join('');

export const documentPageHeaders = pageHeaders({ style });

export function documentPage(document: OpenApiDocument): string {
  const { info, servers = [], security = [], tags = [], components } = document;
  const { schemas = {}, responses = {} } = components as Partial<PageComponents>;
  const context = { components: { schemas, responses }, server: servers[0]?.url ?? '', signedIn: security.length > 0 };
  const operations = operationsOf(document);
  const groups = tags.map(({ name }) => ({
    name,
    operations: operations.filter((operation) => operation.tags.includes(name)),
  }));
  const main = html`<p>Version ${info.version}, at <code>${context.server}</code>. For programs: <a href="../openapi.json">OpenAPI 3.1</a>.</p>
${proseMarkup(info.description ?? '')}
<p>The examples work unchanged against the demo data.</p>
<nav aria-labelledby="contents"><h2 id="contents">Contents</h2>
${groups.map(contents)}</nav>
${groups.map(
  (group) => html`<section><h2>${group.name}</h2>
${group.operations.map((operation) => operationSection(operation, context))}</section>
`,
)}<section><h2>Schemas</h2>
${Object.entries(schemas).map(schemaDetails)}</section>`;
  return htmlDocument({ title: info.title, style, main });
}

/** The part of an operation that the page shows. */
interface PageOperation {
  readonly method: string;
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, Response>>;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

interface Response {
  readonly $ref?: string;
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description?: string }>>;
  readonly content?: Content;
}

/** The part of JSON Schema that our documents use. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
}

/** The components that an operation can refer to. */
interface PageComponents {
  readonly schemas: Readonly<Record<string, Schema>>;
  readonly responses: Readonly<Record<string, Response>>;
}

interface PageContext {
  readonly components: PageComponents;
  /** The URL before the path. */
  readonly server: string;
  readonly signedIn: boolean;
}

function operationsOf({ paths = {} }: OpenApiDocument): readonly PageOperation[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item as Readonly<Record<string, object>>).map(
      ([method, operation]) =>
        ({ parameters: [], ...operation, method: method.toUpperCase(), path }) as unknown as PageOperation,
    ),
  );
}

function contents({ name, operations }: { name: string; operations: readonly PageOperation[] }): Markup {
  const links = operations.map(
    ({ operationId, summary }) => html`<li><a href="#${operationId}">${phraseMarkup(summary)}</a></li>\n`,
  );
  return html`<h3>${name}</h3>\n<ul>${links}</ul>\n`;
}

function operationSection(operation: PageOperation, context: PageContext): Markup {
  const { operationId, method, path, summary, description = '', parameters, requestBody, responses } = operation;
  const answers = Object.entries(responses).map((entry) => responseRow(entry, context.components));
  return html`<section id="${operationId}" aria-labelledby="${operationId}-name">
<h3 id="${operationId}-name">${phraseMarkup(summary)}</h3>
<p class="line"><b>${method}</b> <code>${path}</code> <small>${operationId}</small></p>
${proseMarkup(description)}
<pre><code>${curlOf(operation, context)}</code></pre>
${parameters.length > 0 && html`<h4>Parameters</h4>\n${definitions(parameters.map(parameterRow))}`}
${requestBody && html`<h4>Body</h4>\n${bodyMarkup(requestBody.content)}`}
${answers.length > 0 && html`<h4>Answers</h4>\n${definitions(answers)}`}
</section>
`;
}

/** A term and what is said about it. */
type Definition = readonly [term: Markup, meaning: Markup];

function definitions(rows: readonly Definition[]): Markup | undefined {
  if (rows.length === 0) return undefined;
  return html`<dl>${rows.map(([term, meaning]) => html`<dt>${term}</dt><dd>${meaning}</dd>\n`)}</dl>`;
}

function parameterRow({ name, in: place, required, description, schema }: Parameter): Definition {
  const presence = required === true ? 'required' : 'optional';
  const remarks = remarksOn(description === undefined ? schema : { ...schema, description });
  return [html`<code>${name}</code> <small>${place}, ${typeOf(schema)}, ${presence}</small>`, remarks];
}

function bodyMarkup(content: Content): Markup {
  const bodies = Object.entries(content).map(([type, { schema }]) => html`<code>${type}</code>: ${typeOf(schema)}`);
  return html`<p>${separated(bodies, html`<br>`)}</p>`;
}

function responseRow([status, given]: readonly [string, Response], { responses }: PageComponents): Definition {
  const response = (given.$ref === undefined ? undefined : responses[nameOf(given.$ref)]) ?? given;
  const { description, headers = {}, content = {} } = response;
  const schema = content['application/json']?.schema;
  const names = Object.keys(headers).map((name) => html`<code>${name}</code>`);
  const details = [
    ...(schema === undefined ? [] : [typeOf(schema)]),
    ...(names.length === 0 ? [] : [html`with ${separated(names, ', ')}`]),
  ];
  return [
    html`<code>${status}</code> <small>${separated(details, ', ')}</small>`,
    html`${proseMarkup(description)}${schema?.allOf?.map(fieldsOf)}`,
  ];
}

function schemaDetails([name, schema]: readonly [string, Schema]): Markup {
  const { description = '', additionalProperties } = schema;
  const isClosed = additionalProperties === false;
  // A link to an element inside <details> opens it.
  return html`<details><summary>${name}</summary><div id="schema-${name}">
${proseMarkup(description)}${isClosed && html`<p>Other fields are refused.</p>`}${fieldsOf(schema)}</div></details>
`;
}

function fieldsOf({ properties = {}, required = [] }: Schema): Markup | undefined {
  const rows = Object.entries(properties).map(([name, schema]): Definition => {
    const isOptional = !required.includes(name);
    return [
      html`<code>${name}</code> <small>${typeOf(schema)}${isOptional && ', optional'}</small>`,
      remarksOn(schema),
    ];
  });
  return definitions(rows);
}

/** In a few words: `integer`, `list of Money`. */
function typeOf(schema: Schema): Markup {
  const { $ref, anyOf, allOf, items, type = 'anything', format } = schema;
  if ($ref !== undefined) return html`<a href="#schema-${nameOf($ref)}">${nameOf($ref)}</a>`;
  const parts = anyOf ?? allOf;
  if (parts !== undefined) return separated(parts.map(typeOf), anyOf === undefined ? ' and ' : ' or ');
  const values = 'const' in schema ? [schema.const] : schema.enum;
  if (values !== undefined) {
    const codes = values.map((value) => html`<code>${String(value)}</code>`);
    return separated(codes, ', ');
  }
  if (items !== undefined) return html`list of ${typeOf(items)}`;
  return html`${format ?? String(type)}`;
}

/** Its description, bounds and default, an example, and the fields of an object without a name. */
function remarksOn(schema: Schema): Markup {
  const { description, default: value, examples = [] } = schema;
  const remarks = [
    ...(description === undefined ? [] : [phraseMarkup(description)]),
    ...boundsOf(schema),
    ...(value === undefined ? [] : [html`Default <code>${String(value)}</code>.`]),
    ...examples.slice(0, 1).map((example) => html`Such as <code>${textOf(example)}</code>.`),
  ];
  return html`${separated(remarks, ' ')}${fieldsOf(schema.items ?? schema)}`;
}

/** Leaves out bounds that only say what fits the number's type. */
function boundsOf({ minimum, maximum, maxLength }: Schema): readonly string[] {
  const isShown = (bound: number | undefined) => bound !== undefined && Math.abs(bound) < 2 ** 31 - 1;
  return [
    ...(isShown(minimum) ? [`At least ${minimum}.`] : []),
    ...(isShown(maximum) ? [`At most ${maximum}.`] : []),
    ...(maxLength === undefined ? [] : [`At most ${maxLength} characters.`]),
  ];
}

function separated(parts: readonly (Markup | string)[], separator: Markup | string): Markup {
  return html`${parts.map((part, index) => html`${index > 0 && separator}${part}`)}`;
}

/** Uses the examples of the schemas, which are rows of the demo data. */
function curlOf(operation: PageOperation, { components, server, signedIn }: PageContext): string {
  const { method, path, parameters, requestBody } = operation;
  const required = parameters.filter((parameter) => parameter.required === true);
  const url = server + path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(exampleOf(required, name)));
  const headers = required
    .filter((parameter) => parameter.in === 'header')
    .map(({ name }) => `${name}: ${exampleOf(required, name)}`);
  const schema = requestBody?.content['application/json']?.schema;
  const body = schema && resolve(schema, components).examples?.[0];
  const words = [
    'curl -i',
    ...(signedIn ? ['-u demo:demo'] : []),
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    shellWord(url),
    ...headers.map((header) => `-H ${shellWord(header)}`),
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${shellWord(JSON.stringify(body))}`]),
  ];
  return words.join(' ');
}

function exampleOf(parameters: readonly Parameter[], name: string): string {
  return textOf(parameters.find((parameter) => parameter.name === name)?.schema.examples?.[0] ?? '');
}

function resolve(schema: Schema, { schemas }: PageComponents): Schema {
  return (schema.$ref === undefined ? undefined : schemas[nameOf(schema.$ref)]) ?? schema;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The last part of a reference to a component. */
function nameOf($ref: string): string {
  return $ref.slice($ref.lastIndexOf('/') + 1);
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
