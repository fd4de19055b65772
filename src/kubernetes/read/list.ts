/** Lists all objects of a resource, page by page. */
import { isMap } from '#foundation';
import { type KubernetesApi, ResponseTooLarge } from '../api/client.ts';
import { withQuery } from './resources.ts';

const pageMax = 500;

/**
 * Calls `onItem` for each object, so that no more than a page of whole objects is in memory. Returns the version that a
 * watch continues from.
 */
export async function listAll(api: KubernetesApi, path: string, onItem: (item: unknown) => void): Promise<string> {
  let [limit, from] = [pageMax, ''];
  for (;;) {
    const page = await readPage(
      api,
      withQuery(path, `limit=${limit}${from && `&continue=${encodeURIComponent(from)}`}`),
    );
    if (page === 'too large') {
      if (limit === 1) throw new ResponseTooLarge(`an object of ${path} is too large`);
      limit = Math.ceil(limit / 8);
      continue;
    }
    for (const item of page.items) onItem(item);
    from = page.next;
    if (from === '') return page.version;
  }
}

interface Page {
  readonly items: readonly unknown[];
  readonly version: string;
  /** Where the next page begins. Empty on the last one. */
  readonly next: string;
}

async function readPage(api: KubernetesApi, path: string): Promise<Page | 'too large'> {
  let body: unknown;
  try {
    body = await api.get(path);
  } catch (error) {
    if (error instanceof ResponseTooLarge) return 'too large';
    throw error;
  }
  const { items, metadata } = isMap(body) ? body : {};
  const { resourceVersion, continue: next = '' } = isMap(metadata) ? metadata : {};
  if (!Array.isArray(items) || typeof resourceVersion !== 'string')
    throw new Error(`the response to ${path} is no list of Kubernetes: check the URL of the API server`);
  return { items, version: resourceVersion, next: String(next) };
}
