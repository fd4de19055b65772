/** The representations that we can make of a value: JSON, problem+json, YAML and HTML. */
import { stringify } from 'yaml';
import { dataMarkup, htmlDocument, pageHeaders } from './html.ts';
import type { ErrorBody } from './problem.ts';

/** Makes one representation. Add your own to the list that `createRepresentations` takes. */
export interface Formatter {
  /** The media type that is negotiated, in lower case and without parameters. */
  readonly type: string;
  /** The value of `Content-Type`. */
  readonly contentType: string;
  /** A short word for entity tags: two representations of one version never share a tag. */
  readonly tag: string;
  /** True for a media type that carries errors alone. */
  readonly errorsOnly?: boolean;
  /** Headers that belong to the representation, such as a Content-Security-Policy. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `title` heads the page for people; where `errorsOnly`, it is that of the problem, whatever its status. */
  readonly format: (value: unknown, title: string) => string;
}

export const jsonFormatter: Formatter = {
  type: 'application/json',
  contentType: 'application/json',
  tag: 'json',
  format: (value) => JSON.stringify(value),
};

/**
 * RFC 9457. One object serves both media types: clients ignore the members that they do not know (section 3.2). A problem
 * that has no page says no more than its status, by the type `about:blank` (section 4.2.1).
 */
export const problemJsonFormatter: Formatter = {
  type: 'application/problem+json',
  contentType: 'application/problem+json',
  tag: 'problem',
  errorsOnly: true,
  format: (value, title) => {
    const body = value as ErrorBody;
    const { code: status, message, info_url: page } = body;
    const kind =
      page === undefined ? { type: 'about:blank', title: message.replace(/^\d+: /, '') } : { type: page, title };
    return JSON.stringify({ ...kind, status, ...body });
  },
};

/** RFC 9512. */
export const yamlFormatter: Formatter = {
  type: 'application/yaml',
  contentType: 'application/yaml',
  tag: 'yaml',
  format: (value) => stringify(value, { aliasDuplicateObjects: false }),
};

const style = [
  ':root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}',
  'body{max-width:60rem;margin:2rem auto;padding:0 1rem}',
  'dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}',
  'dt{font-weight:600}dd{margin:0;overflow-wrap:anywhere}',
  'li{margin-bottom:.75rem}',
].join('');

/** For people with a browser: any value as a plain page. */
export const htmlFormatter: Formatter = {
  type: 'text/html',
  contentType: 'text/html; charset=utf-8',
  tag: 'html',
  headers: pageHeaders({ style }),
  format: (value, title) => htmlDocument({ title, style, main: dataMarkup(value) }),
};

/** In the order of the server's preference. */
export const builtInFormatters: readonly Formatter[] = [
  jsonFormatter,
  problemJsonFormatter,
  yamlFormatter,
  htmlFormatter,
];

/** The built-in formatters, with another page for people in place of the plain one. */
export function withHtmlPage(format: Formatter['format'], headers: Formatter['headers']): readonly Formatter[] {
  const page = { ...htmlFormatter, format, ...(headers && { headers }) };
  return builtInFormatters.map((formatter) => (formatter === htmlFormatter ? page : formatter));
}
