/** A document in the representations that clients ask for, each written once: only the server's URL is filled in. */
import {
  createRepresentations,
  escapeHtml,
  type Formatter,
  htmlFormatter,
  jsonFormatter,
  type Representations,
  yamlFormatter,
} from '#http';
import type { DocumentOptions } from './document.ts';

/** What they represent is the absolute URL of a server: the rest of the document is the same for all. */
export interface DocumentRepresentations {
  readonly forPrograms: Representations;
  readonly forPeople: Representations;
}

/** Stands in a document for the URL of its server; YAML must quote it as JSON does. */
const unknownServer = ': server :';

/** What makes a document is loaded now, and not with the rest of the process: most are never asked for one. */
export async function createDocumentRepresentations(
  options: Omit<DocumentOptions, 'server'>,
): Promise<DocumentRepresentations> {
  const { createOpenApiDocument } = await import('./document.ts');
  const { documentPage, documentPageHeaders } = await import('./openapi/page.ts');
  const document = createOpenApiDocument({ ...options, server: unknownServer });
  const written = (formatter: Formatter): Formatter => {
    const text = once(() => formatter.format(document, ''));
    return { ...formatter, format: (server) => fill(text(), JSON.stringify(unknownServer), JSON.stringify(server)) };
  };
  const [json, openApi, yaml] = [written(jsonFormatter), written(openApiFormatter), written(yamlFormatter)];
  const text = once(() => documentPage(document));
  const page: Formatter = {
    ...htmlFormatter,
    headers: documentPageHeaders,
    // The page shows it between the quotes of a shell, too.
    format: (server) => fill(text(), unknownServer, escapeHtml(String(server).replaceAll("'", '%27'))),
  };
  return {
    forPrograms: createRepresentations([json, openApi, yaml]),
    forPeople: createRepresentations([page, json, yaml]),
  };
}

/** What tools of OpenAPI ask for by name. */
const openApiFormatter: Formatter = {
  ...jsonFormatter,
  type: 'application/vnd.oai.openapi+json',
  contentType: 'application/vnd.oai.openapi+json;version=3.1',
  tag: 'openapi',
};

function once(make: () => string): () => string {
  let text: string | undefined;
  return () => {
    text ??= make();
    return text;
  };
}

/** What is filled in is no pattern: `$&` in it means itself. */
function fill(text: string, place: string, value: string): string {
  return text.replaceAll(place, () => value);
}
