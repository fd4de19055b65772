/** The topics of the settings, by which the help and config/README.md group them. */
import type { SettingTable } from '#config';

/** The first setting of each topic, with its name. The tables of settings are in this order. */
const firstSettings: ReadonlyMap<string, string> = new Map([
  ['host', 'addresses'],
  ['configDir', 'configuration'],
  ['redisUrl', 'rate-limits'],
  ['logLevel', 'log'],
  ['tlsCert', 'https'],
  ['adminUsers', 'access'],
  ['bodyBytesMax', 'requests'],
  ['upstreamTimeoutMs', 'services'],
  ['threads', 'process'],
  ['databaseUrl', 'demo'],
]);

/** Groups the settings of a table by topic. */
export function groupByTopic(table: SettingTable): ReadonlyMap<string, SettingTable> {
  const grouped = new Map<string, SettingTable>();
  let topic = '';
  for (const [name, setting] of Object.entries(table)) {
    topic = firstSettings.get(name) ?? topic;
    grouped.set(topic, { ...grouped.get(topic), [name]: setting });
  }
  return grouped;
}
