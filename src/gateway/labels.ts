/** Labels to descriptors: what the rate-limit service is told of a request. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Label, LabelGroup } from '#config';
import type { Descriptor, Entry } from '#ratelimit';

export type Describe = (headers: IncomingHttpHeaders) => readonly Descriptor[];

/**
 * One descriptor for each group. A label whose header is missing is left out with `omitIfNotPresent`, and sent with its
 * default otherwise; a group that is left with no label is dropped. (Emissary drops the whole group instead.)
 */
export function createDescribe(groups: readonly LabelGroup[]): Describe {
  return (headers) => {
    const descriptors: Descriptor[] = [];
    for (const { labels } of groups) {
      const entries = entriesOf(labels, headers);
      if (entries.length > 0) descriptors.push({ entries });
    }
    return descriptors;
  };
}

function entriesOf(labels: readonly Label[], headers: IncomingHttpHeaders): Entry[] {
  const entries: Entry[] = [];
  for (const { name, header, omitIfNotPresent, default: fallback } of labels) {
    const value = headers[header];
    if (value !== undefined)
      entries.push({
        key: name,
        value: typeof value === 'string' ? value : value.join(', '),
      });
    else if (!omitIfNotPresent) entries.push({ key: name, value: fallback });
  }
  return entries;
}
