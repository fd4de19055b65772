/** A program that asks an HTTPS service by several names and says what came of each: what a process trusts is settled when it starts. */
import { createClusters } from '#proxy';
import { ask, breakersOf, specOf } from '../../support/clusters.ts';

async function main([origin = '', ...names]: readonly string[]): Promise<void> {
  const clusters = createClusters();
  const results: string[] = [];
  for (const name of names) {
    const serverName = name === '' ? undefined : name;
    const spec = specOf([origin], { serverName, circuitBreakers: breakersOf({ maxConnections: 1 }) });
    const { cluster } = clusters.acquire(spec);
    for (const host of ['one.example', 'other.example']) {
      const asked = ask(cluster, { headers: { host } });
      results.push(
        await asked.then(
          ({ body, isReused }) => `${body} ${isReused}`,
          ({ code }) => code,
        ),
      );
    }
  }
  await clusters.close();
  process.stdout.write(JSON.stringify(results));
}

void main(process.argv.slice(2));
