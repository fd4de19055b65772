/** One operation for people: what it takes, what it answers, and a line for the shell. */
import { escapeHtml } from '#http';
import { fieldsOf, nameOf, remarksOn, type Schema, textOf, typeOf } from './page-schema.ts';
import { code, definitions, phrase, prose } from './page-text.ts';

/** As much of an operation as the page shows. */
export interface PageOperation {
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

/** What an operation refers to. */
export interface PageComponents {
  readonly schemas: Readonly<Record<string, Schema>>;
  readonly responses: Readonly<Record<string, Response>>;
}

export interface Surroundings {
  readonly components: PageComponents;
  /** The URL before the path. */
  readonly server: string;
  readonly signedIn: boolean;
}

export function operationSection(operation: PageOperation, around: Surroundings): string {
  const { operationId, method, path, summary, description = '', parameters, requestBody, responses } = operation;
  const id = escapeHtml(operationId);
  return `<section id="${id}" aria-labelledby="${id}-name">
<h3 id="${id}-name">${phrase(summary)}</h3>
<p class="line"><b>${escapeHtml(method)}</b> ${code(path)} <small>${id}</small></p>
${prose(description)}
<pre><code>${escapeHtml(curlOf(operation, around))}</code></pre>
${part('Parameters', definitions(parameters.map(parameterRow)))}
${part('Body', requestBody === undefined ? '' : bodyText(requestBody.content))}
${part('Answers', definitions(Object.entries(responses).map((entry) => responseRow(entry, around.components))))}
</section>`;
}

function part(heading: string, content: string): string {
  return content === '' ? '' : `<h4>${heading}</h4>\n${content}`;
}

function parameterRow({ name, in: place, required, description, schema }: Parameter): readonly [string, string] {
  const presence = required === true ? 'required' : 'optional';
  const remarks = remarksOn(description === undefined ? schema : { ...schema, description });
  return [`${code(name)} <small>${escapeHtml(place)}, ${typeOf(schema)}, ${presence}</small>`, remarks];
}

function bodyText(content: Content): string {
  const bodies = Object.entries(content);
  return `<p>${bodies.map(([type, { schema }]) => `${code(type)}: ${typeOf(schema)}`).join('<br>')}</p>`;
}

function responseRow(
  [status, given]: readonly [string, Response],
  { responses }: PageComponents,
): readonly [string, string] {
  const response = (given.$ref === undefined ? undefined : responses[nameOf(given.$ref)]) ?? given;
  const { description, headers = {}, content = {} } = response;
  const schema = content['application/json']?.schema;
  const names = Object.keys(headers).map(code).join(', ');
  const told = [schema === undefined ? '' : typeOf(schema), names === '' ? '' : `with ${names}`].filter(Boolean);
  const more = schema?.allOf?.map(fieldsOf) ?? [];
  return [`${code(status)} <small>${told.join(', ')}</small>`, prose(description) + more.join('')];
}

/** With the examples that the schemas have, which are rows of the demo. */
export function curlOf(operation: PageOperation, { components, server, signedIn }: Surroundings): string {
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
    quote(url),
    ...headers.map((header) => `-H ${quote(header)}`),
    ...(body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${quote(JSON.stringify(body))}`]),
  ];
  return words.join(' ');
}

function exampleOf(parameters: readonly Parameter[], name: string): string {
  return textOf(parameters.find((parameter) => parameter.name === name)?.schema.examples?.[0] ?? '');
}

function resolve(schema: Schema, { schemas }: PageComponents): Schema {
  return (schema.$ref === undefined ? undefined : schemas[nameOf(schema.$ref)]) ?? schema;
}

/** One word for a shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
