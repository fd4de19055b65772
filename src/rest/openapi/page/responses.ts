/** Renders the responses of an operation: one collapsed part for each status, with its fields, headers and examples. */
import { blockMarkup, html, type Markup } from '#http';
import { fieldsOf, valueList } from './fields.ts';
import type { Content, PageContext, PageOperation, PageResponse } from './page-document.ts';
import { exampleOf, nameOf } from './schema.ts';

export function responseList({ responses }: PageOperation, context: PageContext): Markup {
  return html`<h4>Responses</h4>
<div class="responses">
${Object.entries(responses).map(([status, response]) => responsePart(status, resolveResponse(response, context), context))}</div>`;
}

/** The example of the successful response, which is shown beside the operation. Undefined if it has no body. */
export function successExample({ responses }: PageOperation, context: PageContext): SuccessExample | undefined {
  const [status, response] = Object.entries(responses).find(([name]) => name.startsWith('2')) ?? [];
  if (status === undefined || response === undefined) return undefined;
  const { content = {}, description = '' } = resolveResponse(response, context);
  const [media] = Object.values(content);
  return media && { title: `${status} ${description}`, value: exampleOf(media.schema, context.schemas) };
}

interface SuccessExample {
  readonly title: string;
  readonly value: unknown;
}

function resolveResponse(response: PageResponse, { responses }: PageContext): PageResponse {
  return response.$ref === undefined ? response : (responses[nameOf(response.$ref)] ?? response);
}

function responsePart(status: string, response: PageResponse, context: PageContext): Markup {
  const { description = '', headers = {}, content = {} } = response;
  const slugs = slugsOf(content);
  const isError = slugs.length > 0;
  const values = Object.entries(headers).map(([name, header]) => ({ name, ...header }));
  return html`<details class="part"><summary><b class="status" data-state="${stateOf(status)}">${status === 'default' ? 'Other' : status}</b> <span class="note">${isError && status !== 'default' ? slugs.join(', ') : description}</span></summary>
${isError && blockMarkup(description)}${values.length > 0 && html`<h5>Headers</h5>\n${valueList(values, context)}`}${isError ? errorExamples(content, context) : bodyFields(content, context)}${types(content)}
</details>
`;
}

function stateOf(status: string): string {
  return /^[23]/.test(status) ? 'ok' : 'error';
}

function slugsOf(content: Content): readonly string[] {
  return Object.keys(Object.values(content)[0]?.examples ?? {});
}

function errorExamples(content: Content, { problemPages }: PageContext): Markup {
  const [media] = Object.values(content);
  return html`${Object.entries(media?.examples ?? {}).map(
    ([slug, { value }]) =>
      html`<h5>${problemPages === undefined ? slug : html`<a href="${problemPages}${slug}">${slug}</a>`}</h5>
${jsonBlock(value, `Example of ${slug}`)}`,
  )}`;
}

function bodyFields(content: Content, context: PageContext): Markup | undefined {
  const [media] = Object.values(content);
  const fields = media === undefined ? [] : fieldsOf(media.schema, context.schemas);
  return fields.length === 0 ? undefined : html`<h5>Body</h5>\n${valueList(fields, context)}`;
}

function types(content: Content): Markup | undefined {
  const names = Object.keys(content);
  return names.length === 0
    ? undefined
    : html`<p class="note">As ${names.map((name, index) => html`${index > 0 && ', '}<code>${name}</code>`)}</p>`;
}

/** Shows a value as JSON. `label` names the region, which scrolls if it is too large. */
export function jsonBlock(value: unknown, label: string): Markup {
  return html`<pre tabindex="0" role="group" aria-label="${label}"><code>${JSON.stringify(value, undefined, 2)}</code></pre>`;
}
