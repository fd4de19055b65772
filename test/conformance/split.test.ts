/** A process for each module, with the same records: they find each other through SERVICE_ADDRESSES. */
import { startServer, startServers } from '../support/programs/frontdesk-process.ts';
import { conformance } from './conformance.ts';

conformance('separate processes', async () => {
  const env = { TRUSTED_PROXIES: '127.0.0.1' };
  const names = ['hotel', 'car', 'auth', 'ratelimit'];
  const services = await startServers(names.map((name) => startServer(['--only', name], { env })));
  // Each runs one module and so has one address.
  const urls = services.map(({ gatewayUrl, authUrl, ratelimitUrl }) => gatewayUrl || authUrl || ratelimitUrl);
  const addresses = urls.map((url, index) => `${names[index]}=${url.replace(/^\w+:\/\//, '')}`);
  const front = startServer(['--only', 'gateway,api'], { env: { SERVICE_ADDRESSES: addresses.join(',') } });
  const [gateway, ...others] = await startServers([front, ...services.map(async (service) => service)]);
  const [, , authUrl = '', ratelimitUrl = ''] = urls;
  return {
    gatewayUrl: gateway?.gatewayUrl ?? '',
    authUrl,
    ratelimitUrl,
    ratelimitHttpUrl: services[3]?.ratelimitHttpUrl ?? '',
    async close() {
      await gateway?.stop();
      await Promise.all(others.map((service) => service.stop()));
    },
  };
});
