/** Writes the request of an operation as a program for a shell, in JavaScript and in Python. */
import { shellWord } from '#foundation';
import type { PageContext, PageOperation, Parameter } from './page-document.ts';
import { exampleOf } from './schema.ts';

export interface Snippet {
  readonly language: string;
  readonly text: string;
}

/** A request with example values. */
interface ExampleRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined if the request has no body. */
  readonly body: unknown;
  readonly contentType: string | undefined;
  readonly credentials: string | undefined;
}

/** The request has only what is required, with the examples of the document. */
export function snippetsOf(operation: PageOperation, context: PageContext): readonly Snippet[] {
  const request = requestOf(operation, context);
  return [
    { language: 'curl', text: curlOf(request) },
    { language: 'JavaScript', text: javaScriptOf(request) },
    { language: 'Python', text: pythonOf(request) },
  ];
}

function requestOf(operation: PageOperation, context: PageContext): ExampleRequest {
  const { method, path, parameters } = operation;
  const { server, credentials } = context;
  const required = parameters.filter((parameter) => parameter.required === true);
  const exampleFor = (name: string) => parameterExample(required.find((one) => one.name === name)) ?? name;
  const valuesIn = (place: string) =>
    Object.fromEntries(required.filter((one) => one.in === place).map(({ name }) => [name, exampleFor(name)]));
  const query = new URLSearchParams(valuesIn('query')).toString();
  const url = server + path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(exampleFor(name)));
  const { type: contentType, example: body } = bodyExample(operation, context) ?? {};
  return {
    method,
    url: query === '' ? url : `${url}?${query}`,
    headers: valuesIn('header'),
    body,
    contentType,
    credentials,
  };
}

/** The example of a parameter as text. Undefined if it has none. */
export function parameterExample(parameter: Parameter | undefined): string | undefined {
  const value = parameter?.example ?? parameter?.schema.examples?.[0];
  return value === undefined || typeof value === 'string' ? value : JSON.stringify(value);
}

/** The first media type of the body, and an example of it. Undefined if the operation has no body. */
export function bodyExample({ requestBody }: PageOperation, { schemas }: PageContext) {
  const [entry] = Object.entries(requestBody?.content ?? {});
  if (entry === undefined) return undefined;
  const [type, { schema }] = entry;
  return { type, schema, example: exampleOf(schema, schemas) };
}

function curlOf({ method, url, headers, body, contentType, credentials }: ExampleRequest): string {
  const all = { ...headers, ...(contentType !== undefined && { 'Content-Type': contentType }) };
  const first = [
    'curl -i',
    ...(credentials === undefined ? [] : [`-u ${shellWord(credentials)}`]),
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    shellWord(url),
  ].join(' ');
  const lines = [
    first,
    ...Object.entries(all).map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`-d ${shellWord(JSON.stringify(body))}`]),
  ];
  return lines.join(' \\\n  ');
}

function javaScriptOf({ method, url, headers, body, contentType, credentials }: ExampleRequest): string {
  const headerLines = [
    ...(credentials === undefined ? [] : [`Authorization: \`Basic \${btoa(${javaScriptText(credentials)})}\``]),
    ...Object.entries(headers).map(([name, value]) => `${javaScriptText(name)}: ${javaScriptText(value)}`),
    ...(contentType === undefined ? [] : [`'Content-Type': ${javaScriptText(contentType)}`]),
  ];
  const options = [
    ...(method === 'GET' ? [] : [`method: ${javaScriptText(method)},`]),
    ...(headerLines.length === 0 ? [] : ['headers: {', ...headerLines.map((line) => `  ${line},`), '},']),
    ...(body === undefined ? [] : [`body: JSON.stringify(${indented(JSON.stringify(body, undefined, 2), 2)}),`]),
  ];
  const call = options.length === 0 ? '' : `, {\n${options.map((line) => `  ${line}`).join('\n')}\n}`;
  return `const response = await fetch(${javaScriptText(url)}${call});
console.log(response.status, await response.json());`;
}

function javaScriptText(text: string): string {
  return /['\\\n\r]/.test(text) ? JSON.stringify(text) : `'${text}'`;
}

function pythonOf({ method, url, headers, body, contentType, credentials }: ExampleRequest): string {
  const [user = '', ...password] = credentials?.split(':') ?? [];
  const isPlainJson = contentType === undefined || contentType === 'application/json';
  const all = isPlainJson ? headers : { ...headers, 'Content-Type': contentType };
  const options = [
    JSON.stringify(url),
    ...(credentials === undefined ? [] : [`auth=(${JSON.stringify(user)}, ${JSON.stringify(password.join(':'))})`]),
    ...(Object.keys(all).length === 0 ? [] : [`headers=${indented(pythonText(all), 4)}`]),
    ...(body === undefined ? [] : [`json=${indented(pythonText(body), 4)}`]),
  ];
  return `import requests

response = requests.${method.toLowerCase()}(
${options.map((option) => `    ${option},\n`).join('')})
print(response.status_code, response.json())`;
}

const pythonConstants: Readonly<Record<string, string>> = { true: 'True', false: 'False', null: 'None' };

/** JSON is Python, except for these three words outside of texts. */
function pythonText(value: unknown): string {
  return JSON.stringify(value, undefined, 4).replace(
    /"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g,
    (token) => pythonConstants[token] ?? token,
  );
}

/** Indents all lines but the first. */
function indented(text: string, spaces: number): string {
  return text.replaceAll('\n', `\n${' '.repeat(spaces)}`);
}
