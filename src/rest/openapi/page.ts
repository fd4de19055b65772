/** Renders the OpenAPI document as an HTML page with curl commands, which a script replaces with Swagger UI. */
import { blockMarkup, html, htmlDocument, inlineMarkup, type Markup, pageHeaders } from '#http';
import type { ApiInfo, OpenApiDocument } from './document.ts';

export const documentPageHeaders = pageHeaders({ ownFiles: true });

// Files in the same directory as the page.
export const scripts = ['swagger-ui-bundle.js', 'docs.js'] as const;
export const stylesheets = ['swagger-ui.css', 'docs.css'] as const;

export function documentPage(
  document: OpenApiDocument,
  { exampleCredentials = 'user:password' }: Pick<ApiInfo, 'exampleCredentials'>,
): string {
  const { info, servers = [], security = [], tags = [], components } = document;
  const { schemas = {} } = components as Partial<PageContext>;
  const credentials = security.length > 0 ? exampleCredentials : undefined;
  const context: PageContext = { schemas, server: servers[0]?.url ?? '', credentials };
  const operations = operationsOf(document);
  const groups = tags.map(({ name }) => ({
    name,
    operations: operations.filter((operation) => operation.tags.includes(name)),
  }));
  const main = html`<div class="docs"><nav aria-label="Operations">${groups.map(contents)}</nav>
<h2 class="visually-hidden">Operations</h2>
<div id="api">${blockMarkup(info.description ?? '')}
<p>The base URL is <code>${context.server}</code>.</p>
${groups.map(
  (group) => html`<section><h2>${group.name}</h2>
${group.operations.map((operation) => operationSection(operation, context))}</section>
`,
)}</div></div>`;
  const [bundle, script] = scripts;
  const header = html`<nav aria-label="For programs"><a href="../openapi.json">OpenAPI 3.1</a></nav>`;
  return htmlDocument({ title: info.title, stylesheets, classicScripts: [bundle], script, header, main });
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
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: Schema;
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>;

/** The part of a JSON Schema that is needed to find examples. */
interface Schema {
  readonly $ref?: string;
  readonly examples?: readonly unknown[];
}

interface PageContext {
  /** The schemas that operations can refer to, by name. */
  readonly schemas: Readonly<Record<string, Schema>>;
  /** The URL before the path. */
  readonly server: string;
  /** Basic credentials, if the routes require them. */
  readonly credentials: string | undefined;
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
    ({ operationId, method, summary }) =>
      html`<li><a href="#${operationId}"><b class="method">${method}</b> ${inlineMarkup(summary)}</a></li>\n`,
  );
  return html`<h2>${name}</h2>\n<ul class="bare">${links}</ul>\n`;
}

function operationSection(operation: PageOperation, context: PageContext): Markup {
  const { operationId, method, path, summary, description = '' } = operation;
  return html`<section id="${operationId}" aria-labelledby="${operationId}-name">
<h3 id="${operationId}-name">${inlineMarkup(summary)}</h3>
<p><b>${method}</b> <code>${path}</code></p>
${blockMarkup(description)}
<pre><code>${curlOf(operation, context)}</code></pre>
</section>
`;
}

/** Builds a curl command from the examples of the schemas. A parameter without an example is its name. */
function curlOf(operation: PageOperation, { schemas, server, credentials }: PageContext): string {
  const { method, path, parameters, requestBody } = operation;
  const required = parameters.filter((parameter) => parameter.required === true);
  const url = server + path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(exampleOf(required, name)));
  const headers = required
    .filter((parameter) => parameter.in === 'header')
    .map(({ name }) => `${name}: ${exampleOf(required, name)}`);
  const schema = requestBody?.content['application/json']?.schema;
  const body = schema && resolve(schema, schemas).examples?.[0];
  const words = [
    'curl -i',
    ...(credentials === undefined ? [] : [`-u ${shellWord(credentials)}`]),
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    shellWord(url),
    ...headers.map((header) => `-H ${shellWord(header)}`),
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${shellWord(JSON.stringify(body))}`]),
  ];
  return words.join(' ');
}

function exampleOf(parameters: readonly Parameter[], name: string): string {
  return textOf(parameters.find((parameter) => parameter.name === name)?.schema.examples?.[0] ?? name);
}

/** The last part of a reference is the name. */
function resolve(schema: Schema, schemas: PageContext['schemas']): Schema {
  return schemas[schema.$ref?.split('/').at(-1) ?? ''] ?? schema;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
